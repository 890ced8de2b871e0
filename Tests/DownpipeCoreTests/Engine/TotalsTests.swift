import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The snapshot over all downloads.
@Suite(.endsHangs)
struct TotalsTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// The ledger learns the sizes with the first checkpoint, the runs with the reply.
  @Test func sizesOfRunningDownloadsCountAsSoonAsTheServerHasSentThem() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    var some = requests(3)
    // A wrong hint, as in feeds.
    some[1].sizeHint = .known(7)
    some[2].sizeHint = .known(900_000)
    try await downloader.add(contentsOf: some)
    await source.held(atLeast: 3)
    var totals = try await downloader.totals()
    #expect(totals.received == 120_000 && totals.expected == 300_000 && totals.unknownSizes == 0)
    #expect(totals.fraction == 0.4)
    source.release()
    try await downloader.waitUntilIdle()
    totals = try await downloader.totals()
    #expect(totals.received == 300_000 && totals.expected == 300_000 && totals.fraction == 1)
    await downloader.shutdown()
  }

  @Test func fractionAndTimeNeedAllSizes() {
    var totals = DownloadTotals(counts: [.transferring: 2], received: 250, expected: 1000, bytesPerSecond: 50)
    #expect(totals.fraction == 0.25)
    #expect(totals.timeRemaining == .seconds(15))
    totals.bytesPerSecond = nil
    #expect(totals.timeRemaining == nil)
    totals.bytesPerSecond = 1e-9
    #expect(totals.timeRemaining == .seconds(1e9))
    totals.unknownSizes = 1
    #expect(totals.fraction == nil && totals.timeRemaining == nil)
    #expect(DownloadTotals().fraction == nil)
    #expect(DownloadTotals(counts: [.finished: 1]).fraction == 1)
  }
}
