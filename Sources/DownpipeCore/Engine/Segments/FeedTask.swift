internal import Synchronization

/// The task of one connection, which the conductor can cancel alone. The child that runs it awaits it.
final class FeedTask: Sendable {
  private enum State {
    case idle, cancelled
    case running(@Sendable () -> Void)
  }

  private let state = Mutex(State.idle)
  private let executors: Executors

  init(_ executors: Executors) { self.executors = executors }

  /// Runs `work` until it has ended, also when it is cancelled.
  func run<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let task = executors.start(throwing: work)
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .running { task.cancel() }
      return false
    }
    if isCancelled { task.cancel() }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  func cancel() {
    let end = state.withLock { state -> (@Sendable () -> Void)? in
      defer { state = .cancelled }
      if case .running(let end) = state { return end }
      return nil
    }
    end?()
  }
}
