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
/// Sleepers are woken in order of their due time, those of one time in the order in which they went to
/// sleep. A woken task runs when the runtime schedules it: await what it does, such as its next sleep.
/// Safe to use from any thread.
public final class VirtualTime: TimeSource {
  private struct Sleeper: Sendable {
    let id: UInt64
    let due: Duration
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var now = Duration.zero
    var date: Date
    var lastID: UInt64 = 0
    /// Sorted by due time, then by the order in which they went to sleep.
    var sleepers: [Sleeper] = []
    /// Sleeps that were cancelled before they could begin.
    var cancelled: Set<UInt64> = []

    var intervals: [Duration] { sleepers.map { $0.due - now } }

    /// Moves the clock on, and takes out those who are due by then.
    mutating func move(by interval: Duration) -> [Sleeper] {
      now += interval
      date += interval.inSeconds
      let due = sleepers.prefix { $0.due <= now }
      sleepers.removeFirst(due.count)
      return Array(due)
    }
  }

  private let state: Watched<State>

  /// Makes a clock that stands at zero, and a calendar that stands at `date`.
  public init(date: Date = Date(timeIntervalSince1970: 1_000_000_000)) {
    state = Watched(State(date: date))
  }

  /// How far the clock has been moved.
  public var now: Duration { state.value.now }

  /// The calendar's time: moved by ``advance(by:)`` and ``jumpDate(by:)``.
  public var date: Date { state.value.date }

  /// For how long each sleeper has still to sleep, the shortest first.
  public var pendingSleeps: [Duration] { state.value.intervals }

  /// Sleeps until the clock has been moved on by the interval; returns at once when it is not positive.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func sleep(for interval: Duration) async throws {
    try Task.checkCancellation()
    guard interval > .zero else { return }
    let id = state.update { state in
      state.lastID += 1
      return state.lastID
    }
    // The handler has run or never will once the wait is over: nobody adds the id again.
    defer { state.update { state in _ = state.cancelled.remove(id) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let sleeps = state.update { state in
          if state.cancelled.contains(id) { return false }
          let due = state.now + interval
          let index = state.sleepers.firstIndex { $0.due > due } ?? state.sleepers.endIndex
          state.sleepers.insert(Sleeper(id: id, due: due, continuation: continuation), at: index)
          return true
        }
        if !sleeps { continuation.resume(throwing: CancellationError()) }
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

  /// Moves the clock and the calendar on, and wakes everybody who is due, in order of due time.
  ///
  /// A task that sleeps again when it is woken sleeps from the new time on: to see each of a row of
  /// sleeps, move with ``advanceToNextSleeper()``.
  public func advance(by interval: Duration) {
    precondition(interval >= .zero, "a clock never goes back; the calendar does: see jumpDate(by:)")
    let due = state.update { $0.move(by: interval) }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Waits until somebody sleeps, moves the clock to the earliest due time and wakes all who are due then.
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

  /// Moves the calendar alone, forth or back: somebody set the clock, or the machine was asleep.
  public func jumpDate(by interval: Duration) {
    state.update { $0.date += interval.inSeconds }
  }

  /// Waits until at least `count` tasks sleep. Returns early when the waiting task is cancelled.
  public func sleepers(atLeast count: Int) async {
    await sleepers { $0.count >= count }
  }

  /// Waits until somebody sleeps who is due after exactly this interval from now.
  /// Returns early when the waiting task is cancelled.
  public func sleeper(dueIn interval: Duration) async {
    await sleepers { $0.contains(interval) }
  }

  /// Waits until the sleeps that are pending, the shortest first, meet a condition, which must be quick
  /// and must not call this clock. Returns early when the waiting task is cancelled.
  public func sleepers(where condition: @escaping @Sendable ([Duration]) -> Bool) async {
    await state.wait { condition($0.intervals) }
  }
}

extension Duration {
  /// The interval as the calendar counts.
  fileprivate var inSeconds: TimeInterval {
    let (seconds, attoseconds) = components
    return TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18
  }
}
