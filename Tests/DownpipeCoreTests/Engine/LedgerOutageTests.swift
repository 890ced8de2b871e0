import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Downloads that end while the ledger does not answer or fails.
@Suite(.endsHangs)
struct LedgerOutageTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let failure = DownloadError(.ledger, "the disk is full")

  private func downloader(_ source: FakeSource, _ faulty: FaultyLedger, limit count: Int) async throws -> Downloader {
    var options = options
    options.minimumSpeed = nil
    return try await Downloader(options: options) {
      source
      limit(count)
      storage
      FakeRetryPolicy(.giveUp)
      faulty
    }
  }

  private func exchanges(_ faulty: FaultyLedger) -> Int { faulty.calls.count { $0 == .exchange } }

  /// Starts as many downloads as the limit permits, and lets them reach their hold points.
  private func start(_ downloader: Downloader, _ source: FakeSource, _ count: Int, running: Int) async throws {
    try await downloader.add(contentsOf: requests(count))
    await source.held(atLeast: running)
    try await settle(downloader)
  }

  @Test func nothingIsLeasedInTheDarkAndAllIsSavedOnceTheLedgerAnswers() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, faulty, limit: 3)
    try await start(downloader, source, 10, running: 3)
    faulty.hold(.exchange, at: exchanges(faulty) + 1)
    source.release()
    await storage.calls(of: .publish, atLeast: 3)
    try await settle(downloader)
    #expect(source.requests.count == 3)
    #expect(try await downloader.counts() == [.waiting: 7, .transferring: 3], "the ledger has no outcome yet")
    faulty.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 10])
    #expect(source.requests.count == 10)
    await downloader.shutdown()
  }

  @Test("a ledger that fails once or several times is tried again", arguments: [1, 3])
  func failsForAWhile(times: Int) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, faulty, limit: 3)
    try await start(downloader, source, 10, running: 3)
    faulty.fail(.exchange, at: exchanges(faulty) + 1, times: times, with: failure)
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.counts() == [.finished: 10])
    #expect(source.requests.count == 10, "no download was made twice")
    await downloader.shutdown()
  }

  @Test("too many unsaved outcomes delay other downloads only while the ledger fails", arguments: [60, 100])
  func manyOutcomes(count: Int) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init([1, 2, 3]).holding(after: 1))
    let downloader = try await downloader(source, faulty, limit: count)
    try await start(downloader, source, 2 * count, running: count)
    let next = exchanges(faulty) + 1
    faulty.hold(.exchange, at: next)
    faulty.fail(.exchange, at: next, with: failure)
    source.release()
    await storage.calls(of: .publish, atLeast: count)
    try await settle(downloader)
    faulty.release()
    // The ledger is tried again after a second; nothing else may delay the downloads.
    await time.sleeper(dueIn: .seconds(1))
    #expect(source.requests.count == count)
    time.advance(by: .seconds(1))
    try await downloader.waitUntilIdle()
    #expect(time.now == .seconds(1))
    #expect(try await downloader.counts() == [.finished: 2 * count])
    await downloader.shutdown()
  }

  @Test func waitingForIdlenessEndsWhenTheLedgerFailsTimeAndAgain() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, faulty, limit: 3)
    try await start(downloader, source, 3, running: 3)
    faulty.fail(.exchange, at: exchanges(faulty) + 1, times: 1000, with: failure)
    source.release()
    await #expect { try await advancing { try await downloader.waitUntilIdle() } } throws: { code($0) == .ledger }
    #expect(faulty.calls.count { $0 == .exchange } >= 5)
    // Nothing is lost: the next start finds the published files.
    await downloader.shutdown()
    #expect(storage.openPartials == 0)
    #expect(storage.published.count >= 1)
  }

  @Test("a ledger that fails at the end does not delay the shutdown", arguments: [0, 2])
  func failsAtShutdown(others: Int) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, faulty, limit: 3)
    try await start(downloader, source, 3 + others, running: 3)
    faulty.fail(.exchange, at: exchanges(faulty) + 1, times: .max / 2, with: failure)
    faulty.fail(.save, times: .max / 2, with: failure)
    faulty.fail(.close, times: .max / 2, with: failure)
    await downloader.shutdown()
    #expect(storage.openPartials == 0)
    #expect(source.readers == 0 && source.stops == 1)
    #expect(storage.partials.values.allSatisfy { $0.count == 40_000 }, "the bytes are kept")
  }

  @Test func aLedgerThatRestsIsAskedAtOnceAtShutdown() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let first = try await downloader(source, faulty, limit: 3)
    try await start(first, source, 3, running: 3)
    faulty.fail(.exchange, at: exchanges(faulty) + 1, with: failure)
    source.release()
    await time.sleeper(dueIn: .seconds(1))
    await first.shutdown()
    let second = try await downloader(source, FaultyLedger(ledger), limit: 3)
    try await second.waitUntilIdle()
    #expect(try await second.counts() == [.finished: 3])
    #expect(source.requests.count <= 6)
    await second.shutdown()
  }
}
