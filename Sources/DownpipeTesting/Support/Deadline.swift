package import DownpipeCore
import Synchronization

/// Runs `work` and waits for it at most as long as `limit`.
///
/// The work is cancelled at the limit, or when the caller is cancelled. Work that does not respond keeps running
/// unattended, so that a stage that ignores cancellation causes a failure instead of a hanging test run.
/// - Throws: What `work` throws; ``Deviation`` at the limit.
package func withDeadline<Value: Sendable>(
  _ limit: Duration, time: any TimeSource = SystemTime(), _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let outcome = FirstOutcome<Value>()
  let worker = Task {
    // On threads of its own: a stage that blocks them must not hold up the timer.
    do { outcome.complete(.success(try await Executors().blocking(work))) } catch { outcome.complete(.failure(error)) }
  }
  let timer = Task {
    // Many short sleeps: on an overloaded machine each of them is delayed like the work, so that slow scheduling is not
    // reported as work that hangs.
    let slices = 100
    for _ in 0..<slices {
      guard (try? await time.sleep(for: limit / slices)) != nil else { return }
    }
    outcome.complete(.failure(Deviation("it did not end within \(limit)")))
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
    case completed(Result<Value, any Error>)
  }

  private let state = Mutex(State.open)

  func complete(_ result: Result<Value, any Error>) {
    let waiting: CheckedContinuation<Value, any Error>? = state.withLock { state in
      switch state {
      case .open:
        state = .completed(result)
        return nil
      case .awaited(let continuation):
        state = .completed(result)
        return continuation
      case .completed:
        return nil
      }
    }
    waiting?.resume(with: result)
  }

  var value: Value {
    get async throws {
      try await withCheckedThrowingContinuation { continuation in
        let completed: Result<Value, any Error>? = state.withLock { state in
          if case .completed(let result) = state { return result }
          state = .awaited(continuation)
          return nil
        }
        if let completed { continuation.resume(with: completed) }
      }
    }
  }
}
