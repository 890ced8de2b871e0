/// The end of some work, for which any number of tasks wait.
final class Completion: Sendable {
  private let result = Monitor<Result<Void, any Error>?>(nil)

  /// Ends the waits, in the order in which they began. Later calls have no effect.
  func complete(_ new: Result<Void, any Error> = .success(())) { result.update { $0 = $0 ?? new } }

  /// Waits for ``complete(_:)``.
  /// - Throws: The error of the work, and `CancellationError`.
  func wait() async throws {
    try await result.wait { $0 != nil }
    try result.value?.get()
  }

  /// Waits for ``complete(_:)``, also if the task is cancelled.
  /// - Throws: The error of the work.
  func waitThroughCancellation() async throws {
    await result.waitThroughCancellation { $0 != nil }
    try result.value?.get()
  }
}
