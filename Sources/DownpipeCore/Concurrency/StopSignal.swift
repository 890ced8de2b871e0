/// Stops work once, from another task. The signal is latched, so that a stop before the work begins takes effect.
final class StopSignal<Reason: Sendable>: Sendable {
  private struct State: Sendable {
    var reason: Reason?
    var isDone = false
  }
  private let state = Monitor(State())

  /// The reason of the first stop; `nil` if there was none.
  var reason: Reason? { state.value.reason }

  /// Stops the work. Later calls have no effect.
  /// - Returns: Whether this was the first call.
  @discardableResult
  func stop(_ reason: Reason) -> Bool {
    state.update { state in
      guard state.reason == nil else { return false }
      state.reason = reason
      return true
    }
  }

  /// Runs `work` as a child task, which is cancelled by ``stop(_:)`` and by the cancellation of this task.
  func guarding<Result: Sendable>(_ work: @escaping @Sendable () async -> Result) async -> Result {
    await withTaskGroup(of: Result.self) { group in
      group.addTask {
        defer { self.state.update { $0.isDone = true } }
        return await work()
      }
      // This task waits for the end or the stop, whichever comes first, so that no third task is needed.
      try? await state.wait { $0.isDone || $0.reason != nil }
      if reason != nil { group.cancelAll() }
      var result: Result?
      for await outcome in group { result = outcome }
      // The group has one child, which has just ended.
      guard let result else { preconditionFailure("a task group lost its only child") }
      return result
    }
  }
}
