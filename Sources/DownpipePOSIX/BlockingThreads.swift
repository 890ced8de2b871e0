import Dispatch
import DownpipeCore
import Synchronization

/// Threads for work that waits for a disk. The cooperative pool has one thread per core, and a flush can take seconds.
package enum BlockingThreads {
  private static let queue = BlockingQueue(width: 64)
  private static let urgentQueue = BlockingQueue(width: 64)

  /// Which threads run the work.
  package enum Urgency: Sendable {
    /// The threads for most work. Long copies can occupy all of them.
    case ordinary
    /// Threads of their own, for short work that a start or an end waits for.
    case urgent
  }

  /// Runs `body` on such a thread and returns its result.
  ///
  /// Cancelling the task sets the flag that `body` receives; `body` checks it where it can stop.
  package static func run<Value: Sendable>(
    _ urgency: Urgency = .ordinary, _ body: @escaping @Sendable (Cancellation) throws -> Value
  ) async throws -> Value {
    let cancellation = Cancellation()
    let queue = urgency == .urgent ? urgentQueue : queue
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        queue.run { continuation.resume(with: Result { try body(cancellation) }) }
      }
    } onCancel: {
      cancellation.set()
    }
  }

  /// Whether the task that waits for the work was cancelled.
  package final class Cancellation: Sendable {
    private let isSet = Atomic(false)
    private let alarm = DispatchSemaphore(value: 0)

    fileprivate func set() {
      isSet.store(true, ordering: .relaxed)
      alarm.signal()
    }

    /// Blocks the thread for a time, or until the task is cancelled.
    package func sleep(for time: Duration) {
      if !isCancelled { _ = alarm.wait(timeout: .now() + .nanoseconds(Int(clamping: Int64(time / .nanoseconds(1))))) }
    }

    package var isCancelled: Bool { isSet.load(ordering: .relaxed) }

    /// Throws `CancellationError` if the task was cancelled.
    package func check() throws {
      if isCancelled { throw CancellationError() }
    }
  }
}
