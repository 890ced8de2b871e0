public import DownpipeCore
public import Foundation

/// A clock that advances only when a test moves it.
///
/// ```swift
/// let time = VirtualTime()
/// let task = Task { try await time.sleep(for: .seconds(30)) }
/// await time.sleepers(atLeast: 1)      // the task is asleep
/// time.advance(by: .seconds(30))       // it wakes
/// try await task.value
/// ```
/// A test of a downloader moves its clock in three steps: trigger the wait, wait for the sleep, advance the clock.
///
/// ```swift
/// let time = VirtualTime()
/// let source = FakeSource(everyURL: .status(503))
/// let downloader = try await Downloader(options: DownloaderOptions(time: time)) {
///   source
///   Retry(.constant(.seconds(10), attempts: 3))
///   FakeStorage()
/// }
/// let download = try await downloader.add(DownloadRequest("https://example.org/film"))
/// await time.sleeper(dueIn: .seconds(10))      // the first attempt has failed
/// time.advance(by: .seconds(10))               // the second attempt starts
/// await source.requests(atLeast: 2)
/// print(try await download.status.attempts)    // 2
/// await downloader.shutdown()
/// ```
/// - `sleeper(dueIn:)` ignores the timers of the downloader itself. Pass a purpose to wait for one of them, as in
///   `sleeper(dueIn: .milliseconds(100), purpose: .progress)` before a test changes the speed of a transfer.
/// - After waiting for a state such as `.waiting(.retry)`, a test may advance the clock immediately: a task whose
///   instant has passed does not sleep.
/// - A task that sleeps *for* an interval starts at the current time. A test that advances through several such sleeps
///   waits for a sleeper before each step.
/// - Back-off has jitter: use `Retry(.constant(…))`, or pass a fixed `random` to `DownloaderOptions`.
///
/// Sleepers wake in order of their due time, those with the same due time in the order in which they fell asleep. A
/// woken task runs when the runtime schedules it: wait for its effect, such as its next sleep. The clock counts whole
/// nanoseconds: ten times a tenth of a second is a second. It can be used from any thread.
public final class VirtualTime: TimeSource {
  private struct Sleeper: Sendable {
    let id: UInt64
    let due: Duration
    let purpose: SleepPurpose
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var now = Duration.zero
    /// The date at clock time zero, adjusted for jumps. The current date is not stored, because adding many small steps
    /// to it would lose precision.
    var start: Date
    var lastID: UInt64 = 0
    /// Sorted by due time, then by the order in which they fell asleep.
    var sleepers: [Sleeper] = []
    /// Sleeps that were cancelled before they started.
    var cancelled: Set<UInt64> = []

    var date: Date { start.addingTimeInterval(now / .seconds(1)) }
    var intervals: [Duration] { sleepers.map { $0.due - now } }

    /// Moves the clock forward; removes and returns the sleepers that are due.
    mutating func move(by interval: Duration) -> [Sleeper] {
      now += interval.inNanoseconds
      let due = sleepers.prefix { $0.due <= now }
      sleepers.removeFirst(due.count)
      return Array(due)
    }
  }

  private let state: Watched<State>

  /// Creates a clock at zero and a calendar at `date`.
  public init(date: Date = Date(timeIntervalSince1970: 1_000_000_000)) {
    state = Watched(State(start: date))
  }

  /// The time of the clock: the sum of its advances.
  public var now: Duration { state.value.now }

  /// The time of the calendar, which ``advance(by:)`` and ``jumpDate(by:)`` change.
  public var date: Date { state.value.date }

  /// The remaining time of each sleeper, shortest first.
  public var pendingSleeps: [Duration] { state.value.intervals }

  /// Sleeps until the clock reaches the instant; returns immediately when it has passed.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
    try Task.checkCancellation()
    let due = instant.inNanoseconds
    let id = state.update { state in
      state.lastID += 1
      return state.lastID
    }
    // After the wait the cancellation handler cannot add the id again.
    defer { state.update { state in _ = state.cancelled.remove(id) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        // Under the lock, so that a concurrent advance is not missed.
        let outcome: Result<Void, any Error>? = state.update { state in
          if state.cancelled.contains(id) { return .failure(CancellationError()) }
          if due <= state.now { return .success(()) }
          let index = state.sleepers.firstIndex { $0.due > due } ?? state.sleepers.endIndex
          state.sleepers.insert(Sleeper(id: id, due: due, purpose: purpose, continuation: continuation), at: index)
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let sleeper: Sleeper? = state.update { state in
        guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
          // The task is not asleep yet and will find its id here, or it was woken already.
          state.cancelled.insert(id)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Moves the clock and the calendar forward and wakes the sleepers that are due, in order of due time.
  ///
  /// A woken task that sleeps again sleeps from the new time on. Use ``advanceToNextSleeper()`` to step through
  /// consecutive sleeps.
  public func advance(by interval: Duration) {
    precondition(interval >= .zero, "the clock cannot go back; to move the calendar use jumpDate(by:)")
    let due = state.update { $0.move(by: interval) }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Waits until a task sleeps, moves the clock to the earliest due time and wakes the sleepers that are due.
  ///
  /// - Returns: How far the clock was moved; zero when the waiting task was cancelled.
  @discardableResult
  public func advanceToNextSleeper() async -> Duration {
    while !Task.isCancelled {
      await sleepers(atLeast: 1)
      let moved = state.update { state -> (Duration, [Sleeper])? in
        guard let first = state.sleepers.first else { return nil }
        let interval = first.due - state.now
        return (interval, state.move(by: interval))
      }
      // The sleeper may have been cancelled meanwhile; then wait for the next one.
      guard let (interval, due) = moved else { continue }
      for sleeper in due { sleeper.continuation.resume() }
      return interval
    }
    return .zero
  }

  /// Moves only the calendar, forward or back, as when the system clock is set or the machine was asleep.
  public func jumpDate(by interval: Duration) {
    state.update { $0.start += interval / .seconds(1) }
  }

  /// Waits until at least `count` tasks sleep. Returns early when the waiting task is cancelled.
  public func sleepers(atLeast count: Int) async {
    await sleepers { $0.count >= count }
  }

  /// Waits until a task sleeps that is due after exactly this interval from now.
  /// Returns early when the waiting task is cancelled.
  ///
  /// - Parameters:
  ///   - interval: The time from now until the sleep ends.
  ///   - purpose: The purpose of the sleep. `nil` matches all sleeps except the downloader's housekeeping, whose
  ///     intervals could match by coincidence.
  public func sleeper(dueIn interval: Duration, purpose: SleepPurpose? = nil) async {
    let interval = interval.inNanoseconds
    await state.wait { state in
      state.sleepers.contains { sleeper in
        sleeper.due - state.now == interval
          && (purpose.map { $0 == sleeper.purpose } ?? !sleeper.purpose.isHousekeeping)
      }
    }
  }

  /// Waits until the remaining times of the sleepers, shortest first, meet a condition, which must be fast and must not
  /// call this clock. Returns early when the waiting task is cancelled.
  public func sleepers(where condition: @escaping @Sendable ([Duration]) -> Bool) async {
    await state.wait { condition($0.intervals) }
  }
}

extension Duration {
  /// Rounded to whole nanoseconds, because intervals made from floating-point numbers are inexact.
  fileprivate var inNanoseconds: Duration {
    let (seconds, attoseconds) = components
    let half: Int64 = attoseconds < 0 ? -500_000_000 : 500_000_000
    let nanoseconds = (attoseconds + half) / 1_000_000_000
    return Duration(secondsComponent: seconds, attosecondsComponent: nanoseconds * 1_000_000_000)
  }
}
