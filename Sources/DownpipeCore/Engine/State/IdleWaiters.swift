/// The callers that wait until the downloader is idle.
struct IdleWaiters: Sendable {
  /// What one caller waits for.
  final class Waiter: Sendable {
    private let result = Monitor<Result<Void, any Error>?>(nil)

    /// - Throws: The error of the result, and `CancellationError`.
    func wait() async throws {
      try await result.wait { $0 != nil }
      try result.value?.get()
    }

    fileprivate func finish(_ result: Result<Void, any Error>) { self.result.update { $0 = result } }
  }

  /// In the order in which they came.
  private var waiters: [Waiter] = []

  var isEmpty: Bool { waiters.isEmpty }
  var count: Int { waiters.count }

  mutating func insert(_ waiter: Waiter) { waiters.append(waiter) }

  /// Forgets a caller that has stopped waiting.
  mutating func remove(_ waiter: Waiter) { waiters.removeAll { $0 === waiter } }

  /// Ends the waits of those that waited at an earlier time, in the order in which they came.
  mutating func finish(_ earlier: IdleWaiters, _ result: Result<Void, any Error>) {
    let ended = earlier.waiters
    waiters.removeAll { waiter in ended.contains { $0 === waiter } }
    for waiter in ended { waiter.finish(result) }
  }

  /// Ends all waits.
  mutating func finish(_ result: Result<Void, any Error>) { finish(self, result) }
}
