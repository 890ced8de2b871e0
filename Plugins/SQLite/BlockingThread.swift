#if SQLite
  import Dispatch

  /// Runs blocking work on a thread outside the cooperative pool.
  func onBlockingThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global(qos: .userInitiated).async {
        continuation.resume(with: Result(catching: work))
      }
    }
  }
#endif
