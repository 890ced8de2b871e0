@_spi(Ledger) import DownpipeCore
import DownpipeScheduling
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Rates that the workers of a fleet share.
@Suite(.endsHangs)
struct RateLimitFleetTests {
  private let here = Candidate(host: "here.example")
  private let there = Candidate(host: "there.example")
  private let rate: Int64 = 1_000

  private func start(_ scope: RateLimit.Scope = .all, during hours: DailyWindow? = nil, _ time: VirtualTime = .init())
    -> any RateSession
  {
    RateLimit(.bytesPerSecond(rate), for: scope, across: .fleet, during: hours).start(time: time)
  }

  private func share(_ bytesPerSecond: Int64, for seconds: Double = 5) -> RateShare {
    RateShare(bytesPerSecond: bytesPerSecond, validity: .seconds(seconds))
  }

  private func pause(_ session: any RateSession, _ bytes: Int, at milliseconds: Int) -> Duration {
    session.pause(after: bytes, of: TransferContext("a", here), at: .milliseconds(milliseconds))
  }

  @Test("Nothing is received without a share, before the first one and after its end")
  func needsAShare() {
    let session = start()
    #expect(session.wants(at: .zero) == [], "nothing is transferred")
    #expect(pause(session, 0, at: 0) > .zero)
    #expect(session.wants(at: .zero) == [RateWant(key: "of all", rate: .bytesPerSecond(rate), wanted: rate)])
    #expect(pause(session, 0, at: 100) > .zero, "the ledger has not answered")
    session.take([share(500)], askedAt: .zero, at: .milliseconds(200))
    #expect(pause(session, 0, at: 200) == .zero)
    #expect(
      pause(session, 250, at: 200) == .milliseconds(500), "a quarter of a second is not credited before the share")
    #expect(pause(session, 0, at: 700) == .zero)
    // It was valid from the question on.
    #expect(pause(session, 0, at: 4_999) == .zero)
    #expect(pause(session, 0, at: 5_000) > .zero)
    // A process that was stopped for a day has saved nothing up.
    #expect(pause(session, 800, at: 86_400_000) > .zero)
    let wants = session.wants(at: .milliseconds(86_400_000))
    #expect(wants.map(\.held) == [0] && wants.map(\.wanted) == [rate])
    session.take([share(1_000)], askedAt: .milliseconds(86_400_000), at: .milliseconds(86_400_000))
    // The debt, without the tenth of a second that was saved up before.
    #expect(pause(session, 0, at: 86_400_000) == .milliseconds(750))
  }

  @Test("An answer that comes after the end of the share gives nothing")
  func lateAnswer() {
    let session = start()
    _ = pause(session, 0, at: 0)
    _ = session.wants(at: .zero)
    session.take([share(500)], askedAt: .zero, at: .seconds(6))
    #expect(pause(session, 0, at: 6_000) > .zero)
  }

  @Test(
    "It asks at once for the first share, then when a fifth of the validity has passed, and not while nothing arrives")
  func renewal() {
    let session = start()
    _ = pause(session, 0, at: 0)
    #expect(session.wants(at: .zero).count == 1)
    #expect(session.wants(at: .milliseconds(100)) == [])
    session.take([share(800, for: 10)], askedAt: .zero, at: .milliseconds(100))
    for time in stride(from: 100, to: 2_000, by: 100) {
      _ = pause(session, 10, at: time)
      #expect(session.wants(at: .milliseconds(time)) == [], "\(time)")
    }
    _ = pause(session, 10, at: 2_000)
    let wants = session.wants(at: .milliseconds(2_000))
    #expect(wants.map(\.held) == [800])
    // A tenth of a second's bytes were saved up, and then a hundred in each second were used.
    #expect(wants.allSatisfy { (100...300).contains($0.wanted) }, "\(wants)")
    session.take([share(200)], askedAt: .seconds(2), at: .seconds(2))
    #expect(session.wants(at: .seconds(4)) == [], "nothing was used")
    // A failure is followed by the next question a second later.
    _ = pause(session, 10, at: 4_000)
    #expect(session.wants(at: .seconds(4)).map(\.held) == [200])
    _ = pause(session, 10, at: 4_500)
    #expect(session.wants(at: .milliseconds(4_500)) == [])
    _ = pause(session, 10, at: 5_000)
    #expect(session.wants(at: .seconds(5)).map(\.held) == [200])
  }

  @Test("Transfers that use their share up want all, and those that do not want somewhat more than they use")
  func demand() {
    let session = start()
    _ = pause(session, 0, at: 0)
    _ = session.wants(at: .zero)
    session.take([share(500)], askedAt: .zero, at: .zero)
    var now = 0
    while now < 1_000 {
      if pause(session, 0, at: now) == .zero { _ = pause(session, 100, at: now) }
      now += 10
    }
    #expect(session.wants(at: .seconds(1)).map(\.wanted) == [rate])
    session.take([share(500)], askedAt: .seconds(1), at: .seconds(1))
    // The same number of bytes in bursts, after which the transfer pauses: 250 in a second.
    while now < 4_000 {
      if now % 1_000 == 500 { #expect(pause(session, 250, at: now) > .zero) }
      now += 10
    }
    #expect(session.wants(at: .seconds(4)).allSatisfy { (300...450).contains($0.wanted) })
  }

  @Test("Each host has a share; more hosts than are asked for at once follow with the next question")
  func hosts() {
    let session = start(.host)
    for number in 0..<600 {
      _ = session.pause(after: 0, of: TransferContext("a", Candidate(host: "h\(number)")), at: .zero)
    }
    var asked: [String] = []
    for round in 0..<3 {
      let now = Duration.milliseconds(100 * round)
      let wants = session.wants(at: now)
      #expect(wants.count == [256, 256, 88][round])
      asked += wants.map(\.key)
      session.take(wants.map { _ in share(100) }, askedAt: now, at: now)
    }
    #expect(Set(asked) == Set((0..<600).map { "of host h\($0)" }))
    #expect(session.wants(at: .milliseconds(300)) == [])
    let other = start(.host)
    for candidate in [here, there] { _ = other.pause(after: 0, of: TransferContext("a", candidate), at: .zero) }
    #expect(other.wants(at: .zero).map(\.key) == ["of host here.example", "of host there.example"])
    other.take([share(100), share(0)], askedAt: .zero, at: .zero)
    #expect(other.pause(after: 0, of: TransferContext("a", here), at: .zero) == .zero)
    #expect(other.pause(after: 0, of: TransferContext("a", there), at: .zero) > .zero)
  }

  @Test("Outside its hours a rate needs no share")
  func hours() throws {
    let time = VirtualTime(date: Date(timeIntervalSince1970: 43_200))
    let zone = try #require(TimeZone(secondsFromGMT: 0))
    let session = start(
      during: DailyWindow(from: TimeOfDay(hour: 8), to: TimeOfDay(hour: 10), in: zone), time)
    #expect(pause(session, 5_000, at: 0) == .zero)
    #expect(session.wants(at: .zero) == [])
    time.advance(by: .seconds(21 * 3_600))
    #expect(session.pause(after: 0, of: TransferContext("a", here), at: time.now) > .zero)
    #expect(session.wants(at: time.now).count == 1)
  }

  @Test func theReachOfOneDownloadIsItsWorker() {
    let limit = RateLimit(.megabytesPerSecond(1), for: .download, across: .fleet)
    #expect(!limit.sharesRates && limit.summary == "1.00 MB/s for each download")
    #expect(limit.start(time: VirtualTime()).pause(after: 1_000, of: TransferContext("a", here), at: .zero) == .zero)
    let fleet = RateLimit(.megabytesPerSecond(20), across: .fleet)
    #expect(fleet.sharesRates && fleet.summary == "20.0 MB/s at all workers")
    #expect(
      RateLimit(.megabytesPerSecond(1), for: .host, across: .fleet).summary == "1.00 MB/s from one host at all workers")
    #expect(!RateLimit(.megabytesPerSecond(20)).sharesRates)
  }

  // MARK: A whole fleet

  /// A worker that receives as much as it may, over some transfers.
  private struct Worker {
    let owner: String
    let session: any RateSession
    var free: [Duration]
    /// When its call arrives at the ledger, and what it wants.
    var call: (wants: [RateWant], asked: Duration, arrival: Duration)?
    /// When the answer arrives; `nil` for the shares of one that is lost.
    var answer: (shares: [RateShare]?, asked: Duration, arrival: Duration)?
    /// Until when the process is stopped.
    var stopped = Duration.zero
    /// The speed that its server has.
    var speed: Int
  }

  @Test(
    "Workers that start, die, are stopped and lose the ledger never receive more than the rate in any window",
    arguments: 0..<12)
  func windows(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let (rate, chunk, transfers) = (Int64(1_000_000), 20_000, 3)
    let limit = RateLimit(.bytesPerSecond(rate), across: .fleet)
    var shares = RateShares()
    var workers: [Worker] = []
    /// The bytes in each step.
    var received: [Int] = []
    var started = 0
    let step = Duration.milliseconds(5)
    for number in 0..<12_000 {
      let now = step * number
      let date = Date(timeIntervalSince1970: 1_000_000) + now / .seconds(1)
      if workers.count < 4, Int.random(in: 0..<200, using: &generator) == 0 {
        started += 1
        workers.append(
          Worker(
            owner: "\(number)", session: limit.start(time: VirtualTime()),
            free: Array(repeating: now, count: transfers),
            speed: Bool.random(using: &generator) ? 100_000_000 : Int.random(in: 1_000...300_000, using: &generator)))
      }
      if Int.random(in: 0..<3_000, using: &generator) == 0, !workers.isEmpty { workers.removeFirst() }
      var sum = 0
      for index in workers.indices where workers[index].stopped <= now {
        let session = workers[index].session
        if Int.random(in: 0..<2_000, using: &generator) == 0 {
          workers[index].stopped = now + .seconds(Double.random(in: 0...12, using: &generator))
        }
        for transfer in 0..<transfers where workers[index].free[transfer] <= now {
          // What the server has sent meanwhile.
          let most = min(chunk, workers[index].speed * 5 / 1_000)
          var pause = session.pause(after: 0, of: TransferContext("t\(transfer)", here), at: now)
          if pause == .zero {
            pause = session.pause(after: most, of: TransferContext("t\(transfer)", here), at: now)
            sum += most
          }
          workers[index].free[transfer] = now + max(step, min(pause, .seconds(1)))
        }
        if let answer = workers[index].answer, answer.arrival <= now {
          workers[index].answer = nil
          if let shares = answer.shares { session.take(shares, askedAt: answer.asked, at: now) }
        }
        if workers[index].call == nil, workers[index].answer == nil, number % 20 == 0 {
          let wants = session.wants(at: now)
          let delay = Int.random(in: 0..<20, using: &generator) == 0 ? 6_000 : 50
          if !wants.isEmpty {
            workers[index].call = (wants, now, now + .milliseconds(Int.random(in: 0...delay, using: &generator)))
          }
        }
      }
      // What was sent arrives although the process is stopped.
      for index in workers.indices {
        guard let call = workers[index].call, call.arrival <= now else { continue }
        workers[index].call = nil
        let leased = call.wants.map { shares.lease($0, to: workers[index].owner, for: .seconds(5), at: date) }
        let isLost = Int.random(in: 0..<10, using: &generator) == 0
        workers[index].answer = (
          isLost ? nil : leased, call.asked, now + .milliseconds(Int.random(in: 0...50, using: &generator))
        )
      }
      received.append(sum)
    }
    // The last chunk of each transfer, also of workers that have died, and a tenth of a second.
    let perStep = Int(rate) * 5 / 1_000
    let allowance = started * transfers * chunk + Int(rate) / 10 + perStep
    // The most that a window which ends here has beyond the rate.
    var (excess, most) = (0, 0)
    for bytes in received {
      excess = max(0, excess + bytes - perStep)
      most = max(most, excess)
    }
    #expect(most <= allowance, "\(most) of \(allowance)")
    #expect(received.reduce(0, +) > 1_000_000)
  }

  @Test("Eager workers use nearly all of the rate, in equal parts")
  func utilization() {
    let limit = RateLimit(.megabytesPerSecond(1), across: .fleet)
    var shares = RateShares()
    let sessions = (0..<4).map { _ in limit.start(time: VirtualTime()) }
    var free = sessions.map { _ in Duration.zero }
    var bytes = sessions.map { _ in 0 }
    for number in 0..<4_000 {
      let now = Duration.milliseconds(5) * number
      for (index, session) in sessions.enumerated() where free[index] <= now {
        let pause = session.pause(after: 16_384, of: TransferContext("t", here), at: now)
        free[index] = now + max(.milliseconds(5), pause)
        // The first seconds are those in which the shares become fair.
        if now > .seconds(5) { bytes[index] += 16_384 }
      }
      if number % 20 == 0 {
        for (index, session) in sessions.enumerated() {
          let leased = session.wants(at: now).map {
            shares.lease($0, to: "\(index)", for: .seconds(5), at: Date(timeIntervalSince1970: now / .seconds(1)))
          }
          if !leased.isEmpty { session.take(leased, askedAt: now, at: now) }
        }
      }
    }
    #expect((14_000_000...15_500_000).contains(bytes.reduce(0, +)), "\(bytes)")
    for count in bytes { #expect((3_400_000...4_000_000).contains(count), "\(bytes)") }
  }

  @Test("Two downloaders of a ledger keep one rate, and pause while the ledger fails")
  func downloaders() async throws {
    let time = VirtualTime()
    let bytes = DownloadFixtures.pattern(size: 100_000)
    let ledger = FaultyLedger(MemoryLedger())
    // The shares end after five seconds, and nothing arrives then.
    ledger.fail(.leaseRates, at: 6, times: 60, with: DownloadError(.ledger, "the database is away"))
    let received = Watched<[Duration: Int]>([:])
    let urls = try (0..<2).map { try #require(URL(string: "https://example.org/\($0)")) }
    func start() async throws -> Downloader {
      let content = FakeSource(
        Dictionary(uniqueKeysWithValues: urls.map { ($0, [.init(bytes).with { $0.chunkSize = 2_000 }]) }))
      return try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 })) {
        content
        RateLimit(.bytesPerSecond(10_000), across: .fleet)
        Arrivals(received: received)
        Limits(concurrent: 1)
        FakeStorage()
        ledger
      }
    }
    let downloaders = [try await start(), try await start()]
    let downloads = try await downloaders[0].add(contentsOf: urls.map { DownloadRequest($0) })
    let clock = Task {
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    for download in downloads { _ = try await download.value }
    clock.cancel()
    let arrivals = received.value.sorted { $0.key < $1.key }
    #expect(arrivals.reduce(0) { $0 + $1.value } == 200_000)
    var longest = Duration.zero
    for (index, first) in arrivals.enumerated() {
      if index > 0 { longest = max(longest, first.key - arrivals[index - 1].key) }
      var sum = 0
      for last in arrivals[index...] {
        sum += last.value
        // A tenth of a second's bytes, and a chunk of each of the two transfers that is not paid for. The clock goes on while
        // a transfer counts a chunk: there are one that was counted too early, and one after the end of a share.
        let most = 10_000 * ((last.key - first.key) / .seconds(1)) + 1_000 + 3 * 2 * 2_000
        #expect(Double(sum) <= most + 1, "\(sum) bytes from \(first.key) to \(last.key)")
      }
    }
    #expect(longest > .seconds(10), "the ledger was away for half a minute")
    for downloader in downloaders { await downloader.shutdown() }
  }

  /// Notes when bytes arrive, and slows nothing.
  private struct Arrivals: RatePolicy, RateSession {
    let received: Watched<[Duration: Int]>

    func start(time: any TimeSource) -> any RateSession { self }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      if bytes > 0 { received.update { $0[now, default: 0] += bytes } }
      return .zero
    }
  }
}
