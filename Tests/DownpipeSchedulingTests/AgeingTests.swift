@_spi(Ledger) import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct AgeingTests {
  private static let start = Date(timeIntervalSince1970: 1_700_000_000)

  private func context(_ arrival: Int64, _ priority: Priority, at seconds: Double) -> RankingContext {
    RankingContext(
      id: DownloadID("\(arrival)"), priority: priority, arrival: arrival,
      createdAt: Self.start.addingTimeInterval(seconds))
  }

  private func order(_ policy: some SchedulingPolicy, _ contexts: [RankingContext]) -> [Int64] {
    contexts.sorted { policy.rank($0) < policy.rank($1) }.map(\.arrival)
  }

  @Test("A level of priority counts as much as the given time of waiting")
  func aLevelIsTime() {
    let contexts = [
      context(1, .normal, at: 0), context(2, .high, at: 3_599), context(3, .high, at: 3_600),
      context(4, .high, at: 3_601), context(5, .low, at: 0), context(6, .normal, at: 3_599),
    ]
    #expect(order(PriorityQueue(ageing: .seconds(36)), contexts) == [2, 1, 3, 4, 6, 5])
    #expect(order(.priorityQueue(ageing: .seconds(36)), contexts) == [2, 1, 3, 4, 6, 5])
    #expect(order(.priorityQueue(ageing: nil), contexts) == [2, 3, 4, 1, 6, 5])
  }

  @Test("Zero ageing is the order of addition", arguments: [.zero, .seconds(-5)] as [Duration])
  func zero(ageing: Duration) {
    let contexts = [context(1, .low, at: 0), context(2, .high, at: 0), context(3, Priority(.max), at: 0.001)]
    #expect(PriorityQueue(ageing: ageing) == PriorityQueue(ageing: .zero))
    #expect(order(PriorityQueue(ageing: ageing), contexts) == [1, 2, 3])
  }

  /// The bound of the documentation, for random downloads: no download added later than
  /// (highest priority − p) × ageing after a download of priority p ranks before it.
  @Test("Nothing starves beyond the bound", arguments: UInt64(0)..<50)
  func bound(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let ageing = Duration.milliseconds(Int.random(in: 0...100_000, using: &generator))
    let policy = PriorityQueue(ageing: ageing)
    let levels: ClosedRange<Int16> = seed % 2 == 0 ? -100...100 : .min ... .max
    var seconds = 0.0
    let contexts = (Int64(0)..<60).map { arrival in
      seconds += Double.random(in: 0...10_000, using: &generator)
      return context(arrival, Priority(.random(in: levels, using: &generator)), at: seconds)
    }
    let highest = contexts.map { Int($0.priority.rawValue) }.max() ?? 0
    for earlier in contexts {
      let bound = ageing * (highest - Int(earlier.priority.rawValue))
      for later in contexts where later.createdAt > earlier.createdAt {
        let wait = Duration.seconds(later.createdAt.timeIntervalSince(earlier.createdAt))
        // Dates are floating-point numbers, and ranks have whole microseconds.
        guard wait > bound + .microseconds(1) else { continue }
        #expect(policy.rank(earlier) < policy.rank(later), "seed \(seed): \(earlier) \(later)")
      }
    }
    // The bound is tight: without ageing some download breaks it.
    let unaged = PriorityQueue()
    let isBroken = contexts.contains { earlier in
      contexts.contains { later in
        later.createdAt
          > earlier.createdAt.addingTimeInterval(
            ageing / .seconds(1) * Double(highest - Int(earlier.priority.rawValue)))
          && unaged.rank(later) < unaged.rank(earlier)
      }
    }
    #expect(isBroken || ageing > .seconds(50), "seed \(seed) would not find a policy without ageing")
  }

  @Test func extremesDoNotOverflow() {
    let dates = [Date.distantPast, Self.start, .distantFuture, Date(timeIntervalSince1970: .infinity)]
    for ageing in [Duration.zero, .seconds(36), .seconds(365 * 86_400), .seconds(Int64.max), .seconds(1e-9)] {
      let policy = PriorityQueue(ageing: ageing)
      for priority in [Priority(.min), 0, Priority(.max)] {
        let ranks = dates.map {
          policy.rank(RankingContext(id: "a", priority: priority, arrival: 1, createdAt: $0))
        }
        #expect(ranks == ranks.sorted(), "\(ageing) \(priority)")
      }
    }
    _ = PriorityQueue(ageing: .seconds(1)).rank(
      RankingContext(id: "a", arrival: 1, createdAt: Date(timeIntervalSince1970: .nan)))
  }

  @Test("The ledger ranks anew when the ageing changes")
  func summaries() {
    let ageings: [Duration?] = [nil, .zero, .milliseconds(1), .seconds(1), .seconds(36)]
    #expect(Set(ageings.map { Ranking(PriorityQueue(ageing: $0)).name }).count == ageings.count)
    #expect(PriorityQueue().summary.isEmpty, "the ranks of ledgers of earlier versions stay valid")
    #expect(PriorityQueue(ageing: .milliseconds(1_500)).summary == "each level counts as 1.5 s of waiting")
  }
}
