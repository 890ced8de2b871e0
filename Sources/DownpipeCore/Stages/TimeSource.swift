public import Foundation

/// The clock of the engine: the system's, or a virtual one in tests.
public protocol TimeSource: Sendable {
  /// The time since a fixed moment. It never jumps; intervals and speeds are measured with it.
  var now: Duration { get }
  /// The calendar time, which may jump. It is used only for values that outlive the process.
  var date: Date { get }
  /// Suspends until ``now`` has reached the instant; returns at once when it already has.
  ///
  /// The parameter is an instant and not an interval, because a caller computes its wake-up time before it announces
  /// that it waits. If a virtual clock moves between the two, the caller still wakes up in time.
  /// - Parameters:
  ///   - instant: The value of ``now`` at which the sleep ends.
  ///   - purpose: The purpose of the sleep. A virtual clock distinguishes sleeps by it; other clocks ignore it.
  /// - Throws: `CancellationError` when the task is cancelled.
  func sleep(until instant: Duration, purpose: SleepPurpose) async throws
}

extension TimeSource {
  /// Suspends until ``now`` has reached the instant; returns at once when it already has.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(until instant: Duration) async throws {
    try await sleep(until: instant, purpose: .unnamed)
  }

  /// Suspends for the interval, which begins with the call.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(for interval: Duration, purpose: SleepPurpose = .unnamed) async throws {
    try await sleep(until: now + interval, purpose: purpose)
  }
}

/// The purpose of a sleep, by which a test can wait for a particular one.
///
/// A downloader sleeps for its own housekeeping all the time: it renews leases and reports progress. A test that waits
/// for a retry must not mistake one of these sleeps for it.
public struct SleepPurpose: Hashable, Sendable, CustomStringConvertible {
  /// The name of the purpose.
  public let rawValue: String
  /// Creates a purpose for a stage.
  public init(_ rawValue: String) { self.rawValue = rawValue }
  /// The name of the purpose.
  public var description: String { rawValue }

  /// No stated purpose: the default for gates and other stages.
  public static let unnamed = SleepPurpose("unnamed")
  /// Until the next waiting download becomes due: for another attempt, at the time that its record names, or when a
  /// failed ledger is tried again.
  public static let dueTime = SleepPurpose("dueTime")
  /// Until leases are renewed and the downloads of other owners are checked.
  public static let lease = SleepPurpose("lease")
  /// Until progress is reported.
  public static let progress = SleepPurpose("progress")
  /// Until a checkpoint is due.
  public static let checkpoint = SleepPurpose("checkpoint")
  /// Until the connections of a file that is fetched in segments are measured; see ``SegmentPolicy``.
  public static let segments = SleepPurpose("segments")
  /// Until the space on a full disk is checked again.
  public static let room = SleepPurpose("room")
  /// Until changes by other processes are looked for.
  public static let others = SleepPurpose("others")
  /// Between two batches of ``Downloader/changes(every:)``.
  public static let changes = SleepPurpose("changes")

  /// Until the ledger is asked again for shares of rates; see ``RatePolicy/sharesRates``.
  public static let rates = SleepPurpose("rates")
  /// Until a transfer may receive more bytes; see ``RatePolicy``.
  public static let pace = SleepPurpose("pace")

  /// Whether a downloader sleeps for this purpose regardless of its downloads: all purposes above except ``unnamed``,
  /// ``dueTime`` and ``pace``.
  public var isHousekeeping: Bool { Self.housekeeping.contains(self) }

  private static let housekeeping: Set<SleepPurpose> = [
    .lease, .progress, .checkpoint, .segments, .room, .others, .changes, .rates,
  ]
}

/// The clocks of the system.
public struct SystemTime: TimeSource {
  private static let start = ContinuousClock.now

  /// Creates a time source from the clocks of the system.
  public init() {}

  /// The time since the process first used a system time source.
  public var now: Duration { ContinuousClock.now - Self.start }
  /// The system's date.
  public var date: Date { Date() }
  /// Suspends on the continuous clock.
  public func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
    try await ContinuousClock().sleep(until: Self.start + instant)
  }
}
