import Dispatch
import Synchronization

/// Work that may wait for a disk, on threads that are made for waiting: the cooperative pool has one
/// thread a core, and a flush can take seconds.
enum Blocking {
  private static let queue = DispatchQueue(label: "downpipe.files", qos: .utility, attributes: .concurrent)

  /// Runs the work and returns what it gives. The task's cancellation is told to the work, which looks
  /// for it where it can stop.
  static func run<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
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
  final class Cancellation: Sendable {
    fileprivate let isSet = Atomic(false)

    /// Whether to stop.
    var isCancelled: Bool { isSet.load(ordering: .relaxed) }

    /// Throws `CancellationError` once it is time to stop.
    func check() throws {
      if isCancelled { throw CancellationError() }
    }
  }
}
