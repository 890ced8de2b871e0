@_spi(Ledger) import DownpipeCore
import DownpipeScheduling
import HangLimit
import Testing

@Suite(.endsHangs)
struct RankingTests {
  private func context(_ arrival: Int64, _ priority: Priority = .normal) -> RankingContext {
    RankingContext(id: DownloadID("\(arrival)"), priority: priority, arrival: arrival)
  }

  private func order(_ policy: some SchedulingPolicy, _ contexts: [RankingContext]) -> [Int64] {
    contexts.sorted { policy.rank($0) < policy.rank($1) }.map(\.arrival)
  }

  @Test func fifoLooksAtArrivalOnly() {
    let contexts = [context(3, .high), context(1, .low), context(.max, .high), context(2)]
    #expect(order(FIFO(), contexts) == [1, 2, 3, .max])
    #expect(order(.fifo, contexts) == [1, 2, 3, .max])
  }

  @Test func priorityComesBeforeArrival() {
    let contexts = [context(1), context(2, .high), context(3, .low), context(4, .high), context(5)]
    #expect(order(PriorityQueue(), contexts) == [2, 4, 1, 5, 3])
    #expect(order(.priorityQueue, contexts) == [2, 4, 1, 5, 3])
  }

  @Test func priorityHoldsAtTheEnds() {
    let contexts = [
      context(0, Priority(.min)), context(.max, Priority(.max)), context(1, Priority(.max - 1)), context(2, -1),
      context(3, 1),
    ]
    #expect(order(PriorityQueue(), contexts) == [.max, 1, 3, 2, 0])
  }

  @Test func manyRanksAreDistinctAndPure() {
    let policy = PriorityQueue()
    var last = policy.rank(context(0))
    for arrival in Int64(1)..<10_000 {
      let next = policy.rank(context(arrival))
      guard last < next else {
        Issue.record("\(arrival) does not rank after its predecessor")
        return
      }
      last = next
    }
    #expect(policy.rank(context(7, .high)) == policy.rank(context(7, .high)))
  }

  @Test func arrivalsBelowZeroCountAsZero() {
    #expect(FIFO().rank(context(-1)) == FIFO().rank(context(0)))
  }

  @Test func theyAreNamedAfterTheirTypes() {
    #expect(FIFO().name == "FIFO")
    #expect(PriorityQueue().name == "PriorityQueue")
  }

  /// The text that a ledger keeps with its ranks, to compare it with the policy that it is opened with.
  @Test("The name of a ranking contains the policy's name, version and summary")
  func whatNamesTheRanks() {
    struct Weighted: SchedulingPolicy {
      var name = "Weighted"
      var version = 1
      var summary = "weight 2"
      func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
    }
    let names = [Weighted(), Weighted(name: "Other"), Weighted(version: 2), Weighted(summary: "weight 3")].map {
      Ranking($0).name
    }
    #expect(Set(names).count == 4, "\(names)")
    #expect(Ranking(Weighted()).name == names[0])
  }
}
