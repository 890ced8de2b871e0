import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct SchedulingConformanceTests {
  @Test func fifo() async throws { try await SchedulingPolicyConformance(FIFO()).run() }

  @Test(arguments: [nil, .zero, .seconds(36), .seconds(1e15)] as [Duration?])
  func priorityQueue(ageing: Duration?) async throws {
    try await SchedulingPolicyConformance(PriorityQueue(ageing: ageing)).run()
  }

  @Test func lifo() async throws { try await SchedulingPolicyConformance(LIFO()).run() }

  @Test func shortestFirst() async throws { try await SchedulingPolicyConformance(ShortestFirst()).run() }

  @Test func earliestDeadlineFirst() async throws {
    try await SchedulingPolicyConformance(EarliestDeadlineFirst()).run()
  }

  @Test(arguments: [
    Limits(), Limits(concurrent: 1), Limits(concurrent: 3, perHost: 2), Limits(concurrent: 100, perTag: ["video": 1]),
    Limits(concurrent: 0, perHost: 0), Limits(concurrent: 100, bytesInFlight: 2_000_000),
  ])
  func limits(limits: Limits) async throws { try await AdmissionPolicyConformance(limits).run() }
}
