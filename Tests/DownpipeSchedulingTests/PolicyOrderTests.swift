import DownpipeCore
import DownpipeScheduling
import Foundation
import HangLimit
import Testing

/// The orders of the policies without settings of priority.
@Suite(.endsHangs)
struct PolicyOrderTests {
  private func order(_ policy: some SchedulingPolicy, _ contexts: [RankingContext]) -> [DownloadID] {
    contexts.sorted { policy.rank($0) < policy.rank($1) }.map(\.id)
  }

  @Test func lifoIsTheReverseOfArrival() {
    let contexts = [2, .max, 1, 3, 0].map {
      RankingContext(id: DownloadID("\($0)"), priority: $0 == 1 ? .high : .normal, arrival: $0)
    }
    #expect(order(.lifo, contexts) == order(.fifo, contexts).reversed())
  }

  @Test func smallFilesGoFirst() {
    let contexts = [
      RankingContext(id: "large", arrival: 1, size: .known(1 << 40)), RankingContext(id: "unknown", arrival: 2),
      RankingContext(id: "small", arrival: 3, size: 7), RankingContext(id: "small later", arrival: 4, size: 7),
      RankingContext(id: "empty", priority: .low, arrival: 5, size: 0),
      RankingContext(id: "assumed", arrival: 6, size: .known(16 << 20)),
    ]
    let known: [DownloadID] = ["empty", "small", "small later"]
    #expect(order(.shortestFirst, contexts) == known + ["unknown", "assumed", "large"])
    #expect(order(.shortestFirst(assuming: .max), contexts) == known + ["assumed", "large", "unknown"])
    #expect(
      order(.shortestFirst(assuming: -1), contexts) == ["unknown"] + ["empty", "small", "small later"] + [
        "assumed", "large",
      ])
    #expect(ShortestFirst(assuming: .max).summary == "unknown sizes last")
    #expect(ShortestFirst(assuming: 0).summary == "unknown sizes count as 0 bytes")
  }

  @Test func earlyDeadlinesGoFirst() {
    func context(_ id: DownloadID, _ arrival: Int64, _ deadline: Double?, _ priority: Priority = .normal)
      -> RankingContext
    {
      RankingContext(
        id: id, priority: priority, arrival: arrival, deadline: deadline.map { Date(timeIntervalSince1970: $0) })
    }
    let contexts = [
      context("none", 1, nil), context("none, urgent", 2, nil, .high), context("late", 3, 2_000_000_000),
      context("early, low", 4, 1_000_000_000, .low), context("early", 5, 1_000_000_000),
      context("early, later", 6, 1_000_000_000), context("far", 7, Date.distantFuture.timeIntervalSince1970),
      context("a millisecond later", 8, 1_000_000_000.001, .high), context("missed", 9, 1),
    ]
    #expect(
      order(.earliestDeadlineFirst, contexts) == [
        "missed", "early", "early, later", "early, low", "a millisecond later", "late", "far", "none, urgent", "none",
      ])
  }

  /// The composition of orders that the documentation shows.
  @Test func partsOfRanksCompose() {
    struct UrgentThenShortest: SchedulingPolicy {
      func rank(_ context: RankingContext) -> Rank {
        Rank().descending(context.priority).ascending(context.size.bytes ?? .max)
      }
    }
    let contexts = [
      RankingContext(id: "large", arrival: 1, size: 9), RankingContext(id: "small", arrival: 2, size: 8),
      RankingContext(id: "urgent", priority: .high, arrival: 3, size: 10), RankingContext(id: "unknown", arrival: 4),
    ]
    #expect(order(UrgentThenShortest(), contexts) == ["urgent", "small", "large", "unknown"])
  }
}
