internal import Synchronization

/// Stops work once, from another task. The signal is latched, so that a stop before the work begins takes effect.
final class StopSignal<Reason: Sendable>: Sendable {
  private struct State {
    var reason: Reason?
    var waiter: CheckedContinuation<Void, Never>?
    var isDone = false
  }
  private let state = Mutex(State())

  /// The reason of the first stop; `nil` if there was none.
  var reason: Reason? { state.withLock { $0.reason } }

  /// Stops the work. Later calls have no effect.
  /// - Returns: Whether this was the first call.
  @discardableResult
  func stop(_ reason: Reason) -> Bool {
    let (first, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
      guard state.reason == nil else { return (false, nil) }
      state.reason = reason
      defer { state.waiter = nil }
      return (true, state.waiter)
    }
    waiter?.resume()
    return first
  }

  /// Runs `work` as a child task, which is cancelled by ``stop(_:)`` and by the cancellation of this task.
  func guarding<Result: Sendable>(_ work: @escaping @Sendable () async -> Result) async -> Result {
    await withTaskGroup(of: Result.self) { group in
      group.addTask {
        defer { self.endWait() }
        return await work()
      }
      // This task waits for the end or the stop, whichever comes first, so that no third task is needed.
      await stoppedOrDone()
      if reason != nil { group.cancelAll() }
      var result: Result?
      for await outcome in group { result = outcome }
      // The group has one child, which has just ended.
      guard let result else { preconditionFailure("a task group lost its only child") }
      return result
    }
  }

  private func stoppedOrDone() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let resumeNow = state.withLock { state in
          if state.reason != nil || state.isDone { return true }
          state.waiter = continuation
          return false
        }
        if resumeNow { continuation.resume() }
      }
    } onCancel: {
      endWait()
    }
  }

  private func endWait() {
    let waiter = state.withLock { state in
      state.isDone = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}
