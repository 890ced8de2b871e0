public import DownpipeCore
public import Foundation

/// A clock that stands still until a test moves it.
///
/// ```swift
/// let time = VirtualTime()
/// let task = Task { try await time.sleep(for: .seconds(30)) }
/// await time.sleepers(atLeast: 1)      // the task sleeps for certain
/// time.advance(by: .seconds(30))       // and now it goes on
/// try await task.value
/// ```
/// A test of a downloader moves its clock in three steps: do what makes it wait, wait for the sleep, advance.
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
/// await time.sleeper(dueIn: .seconds(10))      // the first attempt has failed, and the second is waited for
/// time.advance(by: .seconds(10))               // it begins
/// await source.requests(atLeast: 2)
/// print(try await download.status.attempts)    // 2
/// await downloader.shutdown()
/// ```
/// - `sleeper(dueIn:)` overlooks the downloader's own timers. Name the purpose to wait for one of them, as in
///   `sleeper(dueIn: .milliseconds(100), purpose: .progress)` before a test moves a transfer's speed.
/// - After an `await` of a state, such as `.waiting(.retry)`, a test may advance at once, in one step or in several:
///   a sleeper that comes late, when its instant has passed, does not sleep.
/// - A task that sleeps *for* an interval begins to count when it says so: where a test advances in steps through a row
///   of such sleeps, it waits for a sleeper before each step.
/// - Back-off has jitter: use `Retry(.constant(…))`, or give `DownloaderOptions` a `random` of the test's own.
///
/// Sleepers are woken in order of their due time, those of one time in the order in which they went to
/// sleep. A woken task runs when the runtime schedules it: await what it does, such as its next sleep.
/// The clock counts whole nanoseconds: ten times a tenth of a second is a second.
/// Safe to use from any thread.
public final class VirtualTime: TimeSource {
  private struct Sleeper: Sendable {
    let id: UInt64
    let due: Duration
    let purpose: SleepPurpose
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var now = Duration.zero
    /// The calendar's time when the clock stood at zero, had it not jumped since then. Not the date itself: the sum of
    /// many small steps would lose what `now` keeps.
    var start: Date
    var lastID: UInt64 = 0
    /// Sorted by due time, then by the order in which they went to sleep.
    var sleepers: [Sleeper] = []
    /// Sleeps that were cancelled before they could begin.
    var cancelled: Set<UInt64> = []

    var date: Date { start.addingTimeInterval(now / .seconds(1)) }
    var intervals: [Duration] { sleepers.map { $0.due - now } }

    /// Moves the clock on, and takes out those who are due by then.
    mutating func move(by interval: Duration) -> [Sleeper] {
      now += interval.inNanoseconds
      let due = sleepers.prefix { $0.due <= now }
      sleepers.removeFirst(due.count)
      return Array(due)
    }
  }

  private let state: Watched<State>

  /// Makes a clock that stands at zero, and a calendar that stands at `date`.
  public init(date: Date = Date(timeIntervalSince1970: 1_000_000_000)) {
    state = Watched(State(start: date))
  }

  /// How far the clock has been moved.
  public var now: Duration { state.value.now }

  /// The calendar's time: moved by ``advance(by:)`` and ``jumpDate(by:)``.
  public var date: Date { state.value.date }

  /// For how long each sleeper has still to sleep, the shortest first.
  public var pendingSleeps: [Duration] { state.value.intervals }

  /// Sleeps until the clock has been moved to the instant; returns at once when it stands there already.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
    try Task.checkCancellation()
    let due = instant.inNanoseconds
    let id = state.update { state in
      state.lastID += 1
      return state.lastID
    }
    // The handler has run or never will once the wait is over: nobody adds the id again.
    defer { state.update { state in _ = state.cancelled.remove(id) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        // Under the lock, so that a clock that is moved at this moment is not missed.
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
          // Either it has not begun to sleep, and finds its id here, or it was woken already.
          state.cancelled.insert(id)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Moves the clock and the calendar on, and wakes all who are due, in order of due time.
  ///
  /// A task that sleeps again when it is woken sleeps from the new time on: to see each of a row of
  /// sleeps, move with ``advanceToNextSleeper()``.
  public func advance(by interval: Duration) {
    precondition(interval >= .zero, "a clock never goes back; the calendar does: see jumpDate(by:)")
    let due = state.update { $0.move(by: interval) }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Waits until a task sleeps, moves the clock to the earliest due time and wakes all who are due then.
  ///
  /// - Returns: how far the clock was moved; zero when the waiting task was cancelled.
  @discardableResult
  public func advanceToNextSleeper() async -> Duration {
    while !Task.isCancelled {
      await sleepers(atLeast: 1)
      let moved = state.update { state -> (Duration, [Sleeper])? in
        guard let first = state.sleepers.first else { return nil }
        let interval = first.due - state.now
        return (interval, state.move(by: interval))
      }
      // Between the two steps the sleeper may have been cancelled; then the next one counts.
      guard let (interval, due) = moved else { continue }
      for sleeper in due { sleeper.continuation.resume() }
      return interval
    }
    return .zero
  }

  /// Moves the calendar alone, forth or back: the clock was set, or the machine was asleep.
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
  /// - Parameter purpose: what it sleeps for; `nil` for anything but a downloader's own housekeeping, which would
  ///   match by chance: leases and retries after thirty seconds are common.
  public func sleeper(dueIn interval: Duration, purpose: SleepPurpose? = nil) async {
    let interval = interval.inNanoseconds
    await state.wait { state in
      state.sleepers.contains { sleeper in
        sleeper.due - state.now == interval
          && (purpose.map { $0 == sleeper.purpose } ?? !sleeper.purpose.isHousekeeping)
      }
    }
  }

  /// Waits until the sleeps that are pending, the shortest first, meet a condition, which must be quick
  /// and must not call this clock. Returns early when the waiting task is cancelled.
  public func sleepers(where condition: @escaping @Sendable ([Duration]) -> Bool) async {
    await state.wait { condition($0.intervals) }
  }
}

extension Duration {
  /// Rounded to whole nanoseconds: an interval that was made of a floating-point number is meant to be one.
  fileprivate var inNanoseconds: Duration {
    let (seconds, attoseconds) = components
    let half: Int64 = attoseconds < 0 ? -500_000_000 : 500_000_000
    let nanoseconds = (attoseconds + half) / 1_000_000_000
    return Duration(secondsComponent: seconds, attosecondsComponent: nanoseconds * 1_000_000_000)
  }
}
