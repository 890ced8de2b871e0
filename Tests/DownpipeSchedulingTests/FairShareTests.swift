import DownpipeCore
import DownpipeMemory
import DownpipeScheduling
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Groups get their shares of the starts.
@Suite(.endsHangs)
struct FairShareTests {
  /// Starts downloads of groups that all wait, as a ledger does: the smallest precedence goes first, then the rank.
  private func starts(_ policy: FairShare, _ candidates: [Candidate], count: Int) -> [Candidate] {
    let session = policy.start()
    return (0..<count).map { _ in
      let next = candidates.min { place(of: $0, session) < place(of: $1, session) } ?? Candidate()
      session.started(next, at: .zero)
      return next
    }
  }

  private func place(of candidate: Candidate, _ session: any AdmissionSession) -> UInt64 {
    session.order.map { $0.precedence($0.group(candidate)) } ?? 0
  }

  private let hosts = ["a", "b", "c"].map { Candidate(host: $0) }

  @Test func hostsStartInTurn() {
    let order = starts(FairShare(by: .host), hosts, count: 9).map(\.host)
    for turn in 0..<3 { #expect(Set(order[turn * 3..<turn * 3 + 3]) == ["a", "b", "c"]) }
  }

  @Test("a group with a weight of 3 has three starts for each start of another, at any time within one start")
  func weights() {
    let order = starts(FairShare(by: .host, weights: ["a": 3]), hosts, count: 100).map(\.host)
    for end in 1...100 {
      let count = order.prefix(end).count { $0 == "a" }
      #expect(abs(Double(count) - 0.6 * Double(end)) <= 1.5)
    }
    #expect(order.count { $0 == "a" } == 60)
  }

  @Test func aGroupThatHadNothingWaitingDoesNotMakeUpForIt() {
    let session = FairShare(by: .host).start()
    for _ in 0..<1000 { session.started(hosts[0], at: .zero) }
    // "b" comes late: from now on the two take turns.
    var order: [String] = []
    for _ in 0..<10 {
      let next = place(of: hosts[1], session) <= place(of: hosts[0], session) ? hosts[1] : hosts[0]
      session.started(next, at: .zero)
      order.append(next.host)
    }
    #expect(order.count { $0 == "b" } <= 6)
  }

  @Test func theGroupOfADownloadWithSeveralTags() {
    let policy = FairShare(by: .tag, weights: ["paying": 3])
    #expect(policy.group(of: Candidate(tags: ["video", "paying", "a"])) == "paying")
    #expect(policy.group(of: Candidate(tags: ["video", "a"])) == "a")
    #expect(policy.group(of: Candidate()) == "")
    #expect(FairShare { $0.intent.rawValue }.group(of: Candidate(intent: .silent)) == "silent")
  }

  @Test func oddWeightsAreClamped() {
    let policy = FairShare(by: .host, weights: ["a": .nan, "b": 0, "c": .infinity, "d": -1])
    #expect(policy.weights == ["a": 1, "b": 0.001, "c": 1000, "d": 0.001])
    #expect(starts(policy, hosts, count: 1000).count { $0.host == "c" } > 990)
  }

  @Test func precedenceNeverFalls() {
    var generator = SeededGenerator(seed: 7)
    let policy = FairShare(by: .host, weights: ["0": 5, "1": 0.1])
    let session = policy.start()
    let candidates = (0..<50).map { Candidate(host: "\($0)") }
    var last = candidates.map { place(of: $0, session) }
    for _ in 0..<2000 {
      session.started(candidates.randomElement(using: &generator) ?? Candidate(), at: .zero)
      let now = candidates.map { place(of: $0, session) }
      #expect(zip(last, now).allSatisfy { $0 <= $1 })
      last = now
    }
  }

  @Test("a host with ten downloads is not held back by a host with a thousand, in a real downloader")
  func inADownloader() async throws {
    let source = FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 10)))
    let downloader = try await Downloader(options: DownloaderOptions(startsSuspended: true)) {
      source
      Limits(concurrent: 1)
      FairShare(by: .host)
      MemoryStore()
    }
    let many = try (0..<200).map { try DownloadRequest("https://many.example/\($0)", id: "many \($0)") }
    let few = try (0..<10).map { try DownloadRequest("https://few.example/\($0)", id: "few \($0)") }
    try await downloader.add(contentsOf: many + few)
    await downloader.setSuspended(false)
    try await downloader.waitUntilIdle()
    let order = source.requests.map { $0.url.host() ?? "" }
    #expect(order.count == 210)
    #expect(order.prefix(21).count { $0 == "few.example" } >= 9)
    await downloader.shutdown()
  }
}
