import DownpipeCore
import Foundation
import Synchronization

/// The time of a simulated world: it stands still while jobs can run, and then jumps to the next sleeper.
final class SimulatedClock: Sendable {
  /// A task that sleeps.
  struct Sleeper: Sendable {
    let number: UInt64
    let due: Duration
    let owner: SimulatedExecutor
    let purpose: SleepPurpose
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State: Sendable {
    var now = Duration.zero
    var last: UInt64 = 0
    /// Sorted by due time, then by the order in which they fell asleep.
    var sleepers: [Sleeper] = []
    /// Sleeps that were cancelled before they started.
    var cancelled: Set<UInt64> = []
    /// The executors of processes that have died, where nothing sleeps any more.
    var dead: Set<Int> = []
  }

  private let state = Mutex(State())

  var now: Duration { state.withLock { $0.now } }

  /// When the next sleeper is due; `nil` if nothing sleeps.
  var nextDue: Duration? { state.withLock { $0.sleepers.first?.due } }

  /// What sleeps, for reports.
  var sleepers: [(due: Duration, purpose: SleepPurpose)] { state.withLock { $0.sleepers.map { ($0.due, $0.purpose) } } }

  /// The purposes of the sleeps of one process.
  func sleeps(of owner: SimulatedExecutor) -> [SleepPurpose] {
    state.withLock { $0.sleepers.filter { $0.owner === owner }.map(\.purpose) }
  }

  /// Sleeps until an instant.
  /// - Throws: `CancellationError` if the task is cancelled, or the owner dies.
  func sleep(until instant: Duration, purpose: SleepPurpose, owner: SimulatedExecutor) async throws {
    try Task.checkCancellation()
    let number = state.withLock { state in
      state.last += 1
      return state.last
    }
    defer { _ = state.withLock { $0.cancelled.remove(number) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let result: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.contains(number) || state.dead.contains(owner.number) {
            return .failure(CancellationError())
          }
          if instant <= state.now { return .success(()) }
          let sleeper = Sleeper(
            number: number, due: instant, owner: owner, purpose: purpose, continuation: continuation)
          let index = state.sleepers.firstIndex { $0.due > instant } ?? state.sleepers.endIndex
          state.sleepers.insert(sleeper, at: index)
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let sleeper = state.withLock { state -> Sleeper? in
        guard let index = state.sleepers.firstIndex(where: { $0.number == number }) else {
          state.cancelled.insert(number)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Moves to the next sleeper, and wakes all that are due then.
  func advance() {
    let due = state.withLock { state -> [Sleeper] in
      guard let first = state.sleepers.first else { return [] }
      state.now = first.due
      let due = state.sleepers.prefix { $0.due <= first.due }
      state.sleepers.removeFirst(due.count)
      return Array(due)
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Ends the sleeps of a process that has died, and all later ones.
  func kill(_ owner: SimulatedExecutor) {
    let sleepers = state.withLock { state -> [Sleeper] in
      state.dead.insert(owner.number)
      let mine = state.sleepers.filter { $0.owner === owner }
      state.sleepers.removeAll { $0.owner === owner }
      return mine
    }
    for sleeper in sleepers { sleeper.continuation.resume(throwing: CancellationError()) }
  }
}

/// The clock of one simulated process: the time of the world, and the date of the machine.
struct ProcessTime: TimeSource {
  let clock: SimulatedClock
  let owner: SimulatedExecutor
  /// The date at the beginning of the world, as the machine's clock is set now.
  let start: @Sendable () -> Date

  var now: Duration { clock.now }
  var date: Date { start().addingTimeInterval(now / .seconds(1)) }

  func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
    try await clock.sleep(until: instant, purpose: purpose, owner: owner)
  }
}
