package import DownpipeCore
import Synchronization

/// Runs `work` and waits for it no longer than `limit`.
///
/// The work is cancelled at the limit, or when the caller is. Work that does not end even then is left
/// behind: a stage that ignores cancellation must show up as a failure, not as a test run that hangs.
/// - Throws: what `work` threw; ``Deviation`` at the limit.
package func withDeadline<Value: Sendable>(
  _ limit: Duration, time: any TimeSource = SystemTime(), _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let outcome = FirstOutcome<Value>()
  let worker = Task {
    do { outcome.settle(.success(try await work())) } catch { outcome.settle(.failure(error)) }
  }
  let timer = Task {
    // In many short sleeps: on a machine with too much to do each of them waits for its turn like the
    // work does, so that work which gets no turn is not taken for work that hangs.
    let slices = 100
    for _ in 0..<slices {
      guard (try? await time.sleep(for: limit / slices)) != nil else { return }
    }
    outcome.settle(.failure(Deviation("it did not end within \(limit)")))
  }
  defer {
    timer.cancel()
    worker.cancel()
  }
  return try await withTaskCancellationHandler {
    try await outcome.value
  } onCancel: {
    worker.cancel()
  }
}

/// The first of several results; the others are dropped.
private final class FirstOutcome<Value: Sendable>: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Value, any Error>)
    case settled(Result<Value, any Error>)
  }

  private let state = Mutex(State.open)

  func settle(_ result: Result<Value, any Error>) {
    let waiting: CheckedContinuation<Value, any Error>? = state.withLock { state in
      switch state {
      case .open:
        state = .settled(result)
        return nil
      case .awaited(let continuation):
        state = .settled(result)
        return continuation
      case .settled:
        return nil
      }
    }
    waiting?.resume(with: result)
  }

  var value: Value {
    get async throws {
      try await withCheckedThrowingContinuation { continuation in
        let settled: Result<Value, any Error>? = state.withLock { state in
          if case .settled(let result) = state { return result }
          state = .awaited(continuation)
          return nil
        }
        if let settled { continuation.resume(with: settled) }
      }
    }
  }
}
