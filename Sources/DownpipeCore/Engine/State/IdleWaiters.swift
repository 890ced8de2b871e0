/// The callers that wait until the downloader is idle.
struct IdleWaiters: Sendable {
  /// In the order in which they came.
  private var waiters: [Completion] = []

  var isEmpty: Bool { waiters.isEmpty }
  var count: Int { waiters.count }

  mutating func insert(_ waiter: Completion) { waiters.append(waiter) }

  /// Forgets a caller that has stopped waiting.
  mutating func remove(_ waiter: Completion) { waiters.removeAll { $0 === waiter } }

  /// Ends the waits of those that waited at an earlier time, in the order in which they came.
  mutating func finish(_ earlier: IdleWaiters, _ result: Result<Void, any Error>) {
    let ended = earlier.waiters
    waiters.removeAll { waiter in ended.contains { $0 === waiter } }
    for waiter in ended { waiter.complete(result) }
  }

  /// Ends all waits.
  mutating func finish(_ result: Result<Void, any Error>) { finish(self, result) }
}
