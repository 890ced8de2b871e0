internal import Synchronization

/// The end of some work, for which any number of tasks wait.
final class Completion: Sendable {
  private struct State {
    var isComplete = false
    var last: UInt64 = 0
    /// In the order in which they began to wait.
    var waiters: [(number: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
  }
  private let state = Mutex(State())

  /// Ends the waits. Later calls have no effect.
  func complete() {
    let waiters = state.withLock { state in
      state.isComplete = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.continuation.resume() }
  }

  /// Waits for ``complete()``.
  /// - Throws: `CancellationError`.
  func wait() async throws {
    let number = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if !state.isComplete { state.waiters.append((number, continuation)) }
          return state.isComplete
        }
        if isOver { continuation.resume() }
        // The handler may have run before the continuation was stored.
        if Task.isCancelled { giveUp(number) }
      }
    } onCancel: {
      giveUp(number)
    }
    try Task.checkCancellation()
  }

  private func giveUp(_ number: UInt64) {
    let waiter = state.withLock { state in
      state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume()
  }
}
