import DownpipeCore
import DownpipeScheduling
@_spi(Ledger) import DownpipeTesting
import HangLimit
import Testing

/// Every policy keeps the properties of a queue, for any sequence of operations.
@Suite(.endsHangs)
struct QueuePropertyTests {
  private func limits(_ limits: QueueLimits) -> any AdmissionPolicy {
    Limits(concurrent: limits.concurrent, perHost: limits.perHost, perTag: ["even": limits.even])
  }

  private func check(
    _ policy: any SchedulingPolicy, bound: (@Sendable (RankingContext) -> Duration?)? = nil
  ) async throws {
    try await QueueProperties(bound: bound, limits: limits) { policy }.run(seeds: 0..<LongForm.count(10, long: 40))
  }

  @Test func fifo() async throws { try await check(FIFO()) { _ in .zero } }

  @Test func lifo() async throws { try await check(LIFO()) }

  @Test func priorityQueue() async throws { try await check(PriorityQueue()) }

  @Test(arguments: [Duration.zero, .milliseconds(20), .seconds(1)])
  func ageing(by ageing: Duration) async throws {
    let highest = Int(QueueOperation.priorities.max()?.rawValue ?? 0)
    try await check(PriorityQueue(ageing: ageing)) { ageing * (highest - Int($0.priority.rawValue)) }
  }

  @Test func shortestFirst() async throws { try await check(ShortestFirst(assuming: 4_000)) }

  @Test func earliestDeadlineFirst() async throws { try await check(EarliestDeadlineFirst()) }
}
