@_spi(Ledger) import DownpipeCore
import DownpipeService
import DownpipeTesting
import Foundation
import HangLimit
import ServiceLifecycleTestKit
import Testing

@Suite(.endsHangs)
struct DownloaderServiceTests {
  @Test func aGracefulShutdownEndsTransfersAtACheckpoint() async throws {
    let bytes = DownloadFixtures.pattern(size: 100_000)
    let url = try #require(URL(string: "https://example.org/file"))
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let ledger = MemoryLedger()
    let downloader = try await Downloader {
      source
      FakeStorage()
      ledger
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)

    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await DownloaderService(downloader).run() }
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    #expect(source.stops == 1)
    let store = try await ledger.open()
    let record = try #require(try await store.record("a"))
    #expect(record.phase == .waiting)
    #expect(record.checkpoint.ranges.prefixLength == 40_000)
    try await store.close()
  }
}
