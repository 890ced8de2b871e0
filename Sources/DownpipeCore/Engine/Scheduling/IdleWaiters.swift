/// The callers that wait until the downloader is idle.
struct IdleWaiters: Sendable {
  typealias Waiter = CheckedContinuation<Result<Void, any Error>, Never>
  private var waiters = OrderedTable<UInt64, Waiter>()
  private var last: UInt64 = 0

  var isEmpty: Bool { waiters.isEmpty }

  /// Returns a number for the next waiter.
  mutating func makeNumber() -> UInt64 {
    last += 1
    return last
  }

  mutating func insert(_ waiter: Waiter, _ number: UInt64) { waiters[number] = waiter }

  /// Resumes waiters whose task was cancelled.
  mutating func cancel(_ numbers: [UInt64]) {
    for number in numbers { waiters.removeValue(forKey: number)?.resume(returning: .failure(CancellationError())) }
  }

  /// Resumes all waiters, in the order in which they came.
  mutating func finish(_ result: Result<Void, any Error>) {
    let all = waiters
    waiters.removeAll()
    for waiter in all.values { waiter.resume(returning: result) }
  }
}
