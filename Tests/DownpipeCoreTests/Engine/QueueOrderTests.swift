import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The queue is ordered by its policy and by arrival, also after downloads are added again or changed, or the policy is
/// replaced.
@Suite(.endsHangs)
struct QueueOrderTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Orders by priority, then by arrival.
  private struct Oldest: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().descending(context.priority).ascending(context.arrival) }
  }

  /// Orders by arrival, the latest first.
  private struct Latest: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().ascending(.max - context.arrival) }
  }

  /// A policy whose second release ranks differently.
  private struct Improved: SchedulingPolicy {
    let version: Int
    func rank(_ context: RankingContext) -> Rank {
      version == 1 ? Oldest().rank(context) : Latest().rank(context)
    }
  }

  private let source: FakeSource
  private let gate = FakeGate(.closed("not yet"))

  init() { source = FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 1_000))) }

  private func downloader(_ policy: some SchedulingPolicy) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      gate
      FakeAdmissionPolicy(maximumConcurrent: 1) { _, running in running.total < 1 ? .admitted : .full("one") }
      policy
      storage
      ledger
    }
  }

  private func feed(_ names: String...) throws -> [DownloadRequest] {
    try names.map { try DownloadRequest("https://example.org/\($0)", id: DownloadID($0)) }
  }

  /// Lets all downloads run, one after the other.
  private func order(_ downloader: Downloader) async throws -> [DownloadID] {
    await gate.watchers(atLeast: 1)
    gate.open()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    return source.requests.map(\.id)
  }

  /// Each refresh of a feed adds all its entries again.
  @Test func aFeedThatIsReadAgainKeepsItsOrder() async throws {
    let downloader = try await downloader(Oldest())
    let feed = try feed("a", "b", "c", "d")
    try await downloader.add(contentsOf: feed)
    try await downloader.update("d") { $0.priority = .high }
    try await downloader.add(contentsOf: feed.reversed())
    for request in feed.dropFirst() { try await downloader.add(request) }
    #expect(try await order(downloader) == ["d", "a", "b", "c"])
  }

  /// A cancelled download stays cancelled until it is restarted.
  @Test func aFeedThatIsReadAgainRevivesNothing() async throws {
    let downloader = try await downloader(Oldest())
    try await downloader.add(contentsOf: try feed("a", "b"))
    try await downloader.cancel("a")
    try await downloader.add(contentsOf: try feed("a", "b"))
    #expect(try await downloader.counts() == [.cancelled: 1, .waiting: 1])
    #expect(try await order(downloader) == ["b"])
  }

  @Test func aPolicyThatIsAnotherAtTheNextStartRanksAnew() async throws {
    let first = try await downloader(Oldest())
    try await first.add(contentsOf: try feed("a", "b", "c"))
    await first.shutdown()
    // A download that is added later has arrived later.
    time.advance(by: .seconds(1))
    let second = try await downloader(Latest())
    try await second.add(contentsOf: try feed("d"))
    #expect(try await order(second) == ["d", "c", "b", "a"])
  }

  @Test func aPolicyOfAnotherVersionRanksAnew() async throws {
    let first = try await downloader(Improved(version: 1))
    try await first.add(contentsOf: try feed("a", "b", "c"))
    await first.shutdown()
    #expect(try await order(try await downloader(Improved(version: 2))) == ["c", "b", "a"])
  }

  /// A paused download does not keep the rank of the former policy.
  @Test func aReplacedPolicyRanksWhatIsPaused() async throws {
    let downloader = try await downloader(Oldest())
    try await downloader.add(contentsOf: try feed("a", "b", "c"))
    try await downloader.pause("b")
    try await downloader.replace(Latest())
    try await downloader.resume("b")
    #expect(try await order(downloader) == ["c", "b", "a"])
  }
}
