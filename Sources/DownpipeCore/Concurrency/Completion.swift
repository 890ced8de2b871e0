/// The end of some work, for which any number of tasks wait.
final class Completion: Sendable {
  private let isComplete = Monitor(false)

  /// Ends the waits, in the order in which they began. Later calls have no effect.
  func complete() { isComplete.update { $0 = true } }

  /// Waits for ``complete()``.
  /// - Throws: `CancellationError`.
  func wait() async throws { try await isComplete.wait { $0 } }
}
