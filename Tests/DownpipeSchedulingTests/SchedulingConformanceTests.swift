import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SchedulingConformanceTests {
  @Test func fifo() async throws { try await SchedulingPolicyConformance(FIFO()).run() }

  @Test func priorityQueue() async throws { try await SchedulingPolicyConformance(PriorityQueue()).run() }

  @Test(arguments: [
    Limits(), Limits(concurrent: 1), Limits(concurrent: 3, perHost: 2), Limits(concurrent: 100, perTag: ["video": 1]),
    Limits(concurrent: 0, perHost: 0),
  ])
  func limits(limits: Limits) async throws { try await AdmissionPolicyConformance(limits).run() }
}
