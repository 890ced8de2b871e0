/// The callers that wait until the downloader is idle.
struct IdleWaiters: Sendable {
  typealias Waiter = CheckedContinuation<Result<Void, any Error>, Never>
  private var waiters = OrderedTable<UInt64, Waiter>()
  private var last: UInt64 = 0

  var isEmpty: Bool { waiters.isEmpty }
  /// The waiters, by number.
  var numbers: Set<UInt64> { Set(waiters.keys) }

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

  /// Resumes some of the waiters, in the order in which they came.
  mutating func finish(_ numbers: Set<UInt64>, _ result: Result<Void, any Error>) {
    let some = waiters.filter { numbers.contains($0.key) }
    waiters.removeAll { number, _ in numbers.contains(number) }
    for waiter in some { waiter.value.resume(returning: result) }
  }

  /// Resumes all waiters, in the order in which they came.
  mutating func finish(_ result: Result<Void, any Error>) {
    let all = waiters
    waiters.removeAll()
    for waiter in all.values { waiter.resume(returning: result) }
  }
}
