@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

struct RateSharesTests {
  private let start = Date(timeIntervalSince1970: 1_000_000_000)

  private func want(_ wanted: Int64, of rate: Int64 = 100, held: Int64 = 0) -> RateWant {
    RateWant(key: "key", rate: .bytesPerSecond(rate), wanted: wanted, held: held)
  }

  /// Leases a share for five seconds.
  private func lease(
    _ shares: inout RateShares, _ owner: String, _ want: RateWant, at seconds: Double = 0
  ) -> Int64 {
    shares.lease(want, to: owner, for: .seconds(5), at: start + seconds).bytesPerSecond
  }

  @Test("The first owner gets what it wants; another one what is free, and its fair share when the first has shrunk")
  func newcomer() {
    var shares = RateShares()
    #expect(lease(&shares, "a", want(500)) == 100)
    #expect(lease(&shares, "b", want(500)) == 0, "nothing is free")
    #expect(lease(&shares, "a", want(500, held: 100), at: 1) == 50)
    #expect(lease(&shares, "b", want(500), at: 1) == 0, "the first may use the larger share until it has heard of it")
    #expect(lease(&shares, "a", want(500, held: 50), at: 2) == 50)
    #expect(lease(&shares, "b", want(500), at: 2) == 50)
    #expect(shares.use(at: start + 2) == 100)
  }

  @Test("What some owners do not want goes to the others, to all of them the same")
  func fairness() {
    var shares = RateShares()
    for round in 0..<4 {
      for (owner, wanted, fair) in [("a", 10, 10), ("b", 1_000, 30), ("c", 30, 30), ("d", 40, 30)]
        as [(_, Int64, Int64)]
      {
        let held = shares.rows.first { $0.owner == owner }?.share ?? 0
        let share = lease(&shares, owner, want(wanted, held: held), at: Double(round))
        if round == 3 { #expect(share == fair, "\(owner)") }
      }
    }
  }

  @Test("A share that was used until its end is free then, and not before")
  func expiry() {
    var shares = RateShares()
    #expect(lease(&shares, "a", want(80)) == 80)
    #expect(lease(&shares, "b", want(100), at: 4.9) == 20)
    #expect(lease(&shares, "b", want(100, held: 20), at: 5) == 100)
    #expect(shares.rows.map(\.owner) == ["b"])
  }

  @Test("An owner that did not hear of its smaller share uses the larger one until that has expired")
  func lostAnswers() {
    var shares = RateShares()
    #expect(lease(&shares, "a", want(100)) == 100)
    #expect(lease(&shares, "b", want(100)) == 0)
    for second in 1...4 {
      // The answers are lost.
      #expect(lease(&shares, "a", want(100, held: 100), at: Double(second)) == 50)
      #expect(lease(&shares, "b", want(100), at: Double(second)) == 0)
    }
    // It has nothing now, and says so.
    #expect(lease(&shares, "a", want(100, held: 0), at: 5) == 50)
    #expect(lease(&shares, "b", want(100), at: 5) == 50)
  }

  @Test("The smallest rate holds, as long as its owner is there")
  func ratesThatDiffer() {
    var shares = RateShares()
    #expect(lease(&shares, "a", want(1_000, of: 100)) == 100)
    #expect(lease(&shares, "b", want(1_000, of: 40)) == 0, "the share of the other one is more than this rate")
    #expect(lease(&shares, "a", want(1_000, of: 100, held: 100), at: 1) == 20)
    #expect(lease(&shares, "a", want(1_000, of: 100, held: 20), at: 2) == 20)
    #expect(lease(&shares, "b", want(1_000, of: 40), at: 2) == 20)
    #expect(lease(&shares, "a", want(1_000, of: 100, held: 20), at: 7) == 100, "the other one is gone")
  }

  @Test("Bytes that cannot be divided go to the first owners, and no share is negative")
  func smallRates() {
    var shares = RateShares()
    for round in 0..<3 {
      for owner in ["a", "b", "c"] {
        let held = shares.rows.first { $0.owner == owner }?.share ?? 0
        _ = lease(&shares, owner, want(9, of: 2, held: held), at: Double(round))
      }
    }
    #expect(shares.rows.map(\.share) == [1, 1, 0])
    #expect(lease(&shares, "d", want(-5)) == 0)
    var damaged = RateShares([
      .init(owner: "x", rate: -9, wanted: .min, share: .min, end: start + 9, held: .min, heldEnd: start + 9),
      .init(owner: "y", rate: .max, wanted: .max, share: .max, end: start + 9, held: .max, heldEnd: start + 9),
      .init(owner: "z", rate: .max, wanted: .max, share: .max, end: start + 9),
    ])
    #expect(lease(&damaged, "a", want(.max, of: .max)) == 0)
  }

  @Test("A share that was leased before the clock was set back expires after a minute")
  func clockSetBack() {
    var shares = RateShares()
    #expect(lease(&shares, "a", want(100), at: 3_600) == 100)
    #expect(lease(&shares, "b", want(100), at: 0) == 0)
    #expect(lease(&shares, "b", want(100), at: 59) == 0)
    #expect(lease(&shares, "b", want(100), at: 60) == 100)
  }

  @Test("Among many owners a share is valid for longer, up to a minute", arguments: [1, 50, 100, 1_000])
  func validity(_ count: Int) {
    var shares = RateShares()
    var last = RateShare(bytesPerSecond: 0, validity: .zero)
    for number in 1...count { last = shares.lease(want(1), to: "\(number)", for: .seconds(5), at: start) }
    #expect(last.validity == .seconds([1: 5, 50: 5, 100: 10, 1_000: 60][count] ?? 0))
  }

  // MARK: Properties

  /// An owner, with what it knows.
  private struct Worker {
    let name: String
    var wanted: Int64
    /// The share in effect, which it uses up, until it expires by its own clock.
    var share: (speed: Int64, end: Int)?
    /// A call that has been sent, and the answer to it; the times are those of their arrival.
    var call: (want: RateWant, sent: Int, arrival: Int)?
    var answer: (share: RateShare, sent: Int, arrival: Int, isLost: Bool)?

    func use(at now: Int) -> Int64 { share.map { now < $0.end ? $0.speed : 0 } ?? 0 }
  }

  @Test("At no instant do all workers together use more than the rate", arguments: 0..<LongForm.count(20, long: 200))
  func neverMoreThanTheRate(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let rate = Int64.random(in: 1...1_000, using: &generator)
    let calmness = Int.random(in: 1...20, using: &generator)
    var shares = RateShares()
    var workers: [Worker] = []
    var (now, names, most) = (0, 0, Int64(0))
    for step in 0..<3_000 {
      now += Int.random(in: 0...100, using: &generator)
      let date = start + Double(now) / 1_000
      if workers.isEmpty || Int.random(in: 0..<(20 * calmness), using: &generator) == 0, workers.count < 8 {
        names += 1
        workers.append(Worker(name: "\(names)", wanted: Int64.random(in: 0...(2 * rate), using: &generator)))
      }
      // One that dies says nothing, and what it has sent may still arrive.
      if Int.random(in: 0..<(100 * calmness), using: &generator) == 0,
        let index = workers.indices.randomElement(using: &generator)
      {
        if let call = workers[index].call, Bool.random(using: &generator) {
          _ = shares.lease(call.want, to: workers[index].name, for: .seconds(5), at: date)
        }
        workers.remove(at: index)
      }
      for index in workers.indices.shuffled(using: &generator) {
        if let answer = workers[index].answer, answer.arrival <= now {
          workers[index].answer = nil
          let end = answer.sent + Int(answer.share.validity / .milliseconds(1))
          if !answer.isLost { workers[index].share = (answer.share.bytesPerSecond, end) }
        }
        if let call = workers[index].call, call.arrival <= now {
          let share = shares.lease(call.want, to: workers[index].name, for: .seconds(5), at: date)
          workers[index].call = nil
          let delay = Int.random(in: 0...2, using: &generator) == 0 ? 8_000 : 200
          workers[index].answer = (
            share, call.sent, now + Int.random(in: 0...delay, using: &generator),
            Int.random(in: 0..<4, using: &generator) == 0
          )
        }
        if workers[index].call == nil, workers[index].answer == nil, Int.random(in: 0..<10, using: &generator) == 0 {
          if Bool.random(using: &generator) {
            workers[index].wanted = Int64.random(in: 0...(2 * rate), using: &generator)
          }
          let want = want(workers[index].wanted, of: rate, held: workers[index].use(at: now))
          workers[index].call = (want, now, now + Int.random(in: 0...300, using: &generator))
        }
      }
      let use = workers.reduce(0) { $0 + $1.use(at: now) }
      most = max(most, use)
      guard use <= rate, shares.use(at: date) <= rate else {
        Issue.record("\(use) of \(rate) at \(now), step \(step): \(workers), \(shares.rows)")
        return
      }
    }
    #expect(most > 0)
  }

  @Test(
    "Four rounds after the wants have last changed, the shares are max-min fair",
    arguments: 0..<LongForm.count(20, long: 200))
  func fairAfterAWhile(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let rate = Int64.random(in: 1...2_000, using: &generator)
    let names = (0..<Int.random(in: 1...12, using: &generator)).map { "\($0)" }
    var shares = RateShares()
    var known: [String: Int64] = [:]
    var second = 0.0
    for _ in 0..<5 {
      let wants = Dictionary(
        uniqueKeysWithValues: names.map { ($0, Int64.random(in: 0...rate, using: &generator)) })
      for _ in 0..<4 {
        for name in names.shuffled(using: &generator) {
          let want = want(wants[name] ?? 0, of: rate, held: known[name] ?? 0)
          known[name] = lease(&shares, name, want, at: second)
        }
        second += 1
      }
      // Byte by byte to the one that has least and wants more.
      var fair = Dictionary(uniqueKeysWithValues: names.map { ($0, Int64(0)) })
      for _ in 0..<rate {
        let hungry = names.filter { fair[$0, default: 0] < wants[$0, default: 0] }
        guard let next = hungry.min(by: { (fair[$0, default: 0], $0) < (fair[$1, default: 0], $1) }) else { break }
        fair[next, default: 0] += 1
      }
      #expect(known == fair, "wants \(wants) of \(rate)")
    }
  }
}
