import Dispatch
import Synchronization

/// Threads for work that waits for a disk. The cooperative pool has one thread per core, and a flush can take seconds.
package enum BlockingThreads {
  private static let queue = DispatchQueue(label: "downpipe.blocking", qos: .utility, attributes: .concurrent)

  /// Runs `body` on such a thread and returns its result.
  ///
  /// Cancelling the task sets the flag that `body` receives; `body` checks it where it can stop.
  package static func run<Value: Sendable>(
    _ body: @escaping @Sendable (Cancellation) throws -> Value
  ) async throws -> Value {
    let cancellation = Cancellation()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        queue.async { continuation.resume(with: Result { try body(cancellation) }) }
      }
    } onCancel: {
      cancellation.isSet.store(true, ordering: .relaxed)
    }
  }

  /// Whether the task that waits for the work was cancelled.
  package final class Cancellation: Sendable {
    fileprivate let isSet = Atomic(false)

    package var isCancelled: Bool { isSet.load(ordering: .relaxed) }

    /// Throws `CancellationError` if the task was cancelled.
    package func check() throws {
      if isCancelled { throw CancellationError() }
    }
  }
}
