@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What a new downloader finds in the ledger of an earlier one, and ledgers that fail.
@Suite(.endsHangs)
struct DownloaderRestartTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func anotherDownloaderGoesOnWhereTheFirstWasShutDown() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let first = try await downloader(source)
    let waiting = try await first.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let value = Task { try await waiting.value }
    await first.shutdown()
    await #expect { try await value.value } throws: { ($0 as? DownloadError)?.code == .shutDown }
    await #expect { try await first.add(DownloadRequest(url)) } throws: { ($0 as? DownloadError)?.code == .shutDown }

    let second = try await downloader(source)
    let download = try #require(try await second.download("a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    await second.shutdown()
  }

  @Test func checkpointsAreWrittenWhileItRuns() async throws {
    let bytes = DownloadFixtures.pattern(size: 600_000)
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // The ticker runs every 100 ms; a checkpoint is due after a second.
    for _ in 0..<11 {
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      time.advance(by: .milliseconds(100))
    }
    await faulty.calls(of: .save, atLeast: 1)
    let saved = faulty.saves.first
    #expect(saved?.fields == .checkpoint)
    #expect(saved?.record.checkpoint.ranges.prefixLength == 40_000)
    #expect(storage.calls.contains { $0.operation == .synchronize })
    source.release()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }

  @Test func aLedgerThatCannotBeOpenedIsReported() async throws {
    await #expect {
      try await Downloader(
        Pipeline {
          FakeSource(everyURL: .init([]))
          FakeStorage()
          BrokenLedger()
        })
    } throws: { ($0 as? DownloadError)?.code == .ledger }
  }

  @Test func aRecordThatIsLostStopsTheTransferAtOnce() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let stolen = StolenLedger(ledger)
    let downloader = try await downloader(source, ledger: stolen)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // Another owner takes over the record without the engine's knowledge.
    stolen.steal()
    source.release()
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }
}
