public import Foundation

/// Where the engine gets time from: the system's, or a virtual one in tests.
public protocol TimeSource: Sendable {
  /// Time since some fixed moment; never jumps. Intervals and speeds are measured with it.
  var now: Duration { get }
  /// The calendar's time, which may jump; only what outlives the process uses it.
  var date: Date { get }
  /// Returns once ``now`` has reached the instant, at once when it already has.
  ///
  /// An instant instead of an interval: a caller works out when it has to wake up before it announces that it waits,
  /// and a clock that is moved between the two wakes it all the same.
  /// - Parameters:
  ///   - instant: the value of ``now`` at which the sleep ends.
  ///   - purpose: what the sleep is for; a virtual clock tells sleeps apart by it, others ignore it.
  /// - Throws: `CancellationError` when the task is cancelled.
  func sleep(until instant: Duration, purpose: SleepPurpose) async throws
}

extension TimeSource {
  /// Returns once ``now`` has reached the instant, at once when it already has.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(until instant: Duration) async throws {
    try await sleep(until: instant, purpose: .unnamed)
  }

  /// Returns after the interval, which begins with the call.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(for interval: Duration, purpose: SleepPurpose = .unnamed) async throws {
    try await sleep(until: now + interval, purpose: purpose)
  }
}

/// What a sleep is for, so that a test can wait for the one it means.
///
/// A downloader sleeps for reasons of its own all the time: it renews leases and reports progress. A test that waits
/// for a retry must not take one of those for it.
public struct SleepPurpose: Hashable, Sendable, CustomStringConvertible {
  /// The word by which it is told from others.
  public let rawValue: String
  /// Makes a purpose of a stage's own.
  public init(_ rawValue: String) { self.rawValue = rawValue }
  /// The word.
  public var description: String { rawValue }

  /// A sleep that says nothing about its purpose: those of gates and other stages.
  public static let unnamed = SleepPurpose("unnamed")
  /// Until the next waiting download becomes due: for another attempt, after ``DownloadRecord/notBefore``, or when
  /// a ledger that has failed is asked again.
  public static let dueTime = SleepPurpose("dueTime")
  /// Until leases are renewed and other owners' downloads are looked at.
  public static let lease = SleepPurpose("lease")
  /// Until progress is reported.
  public static let progress = SleepPurpose("progress")
  /// Until a checkpoint is due.
  public static let checkpoint = SleepPurpose("checkpoint")
  /// Until a full disk is looked at again.
  public static let room = SleepPurpose("room")
  /// Until watchers are told of other reasons for which downloads wait.
  public static let reasons = SleepPurpose("reasons")
  /// Between two batches of ``Downloader/changes(every:)``.
  public static let changes = SleepPurpose("changes")

  /// Whether a downloader sleeps for it whatever its downloads do: all of the above but ``unnamed`` and ``dueTime``.
  public var isHousekeeping: Bool { Self.housekeeping.contains(self) }

  private static let housekeeping: Set<SleepPurpose> = [.lease, .progress, .checkpoint, .room, .reasons, .changes]
}

/// The system's clocks.
public struct SystemTime: TimeSource {
  private static let start = ContinuousClock.now

  /// The system's clocks.
  public init() {}

  /// Time since the process first asked.
  public var now: Duration { ContinuousClock.now - Self.start }
  /// The system's date.
  public var date: Date { Date() }
  /// Sleeps on the continuous clock.
  public func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
    try await ContinuousClock().sleep(until: Self.start + instant)
  }
}
