internal import Synchronization

/// The task of one feed, which the conductor can cancel alone. The child that runs it awaits it.
final class FeedTask: Sendable {
  private enum State {
    case idle, cancelled
    case running(Task<Void, any Error>)
  }

  private let state = Mutex(State.idle)

  /// Runs `work` until it has ended, also when it is cancelled.
  func run(_ work: @escaping @Sendable () async throws -> Void) async throws {
    let task = Task { try await work() }
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .running(task)
      return false
    }
    if isCancelled { task.cancel() }
    try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  func cancel() {
    let task = state.withLock { state -> Task<Void, any Error>? in
      defer { state = .cancelled }
      if case .running(let task) = state { return task }
      return nil
    }
    task?.cancel()
  }
}
