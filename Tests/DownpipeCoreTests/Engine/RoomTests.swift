import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Downloads that wait for space go on soon after there is room.
@Suite(.endsHangs)
struct RoomTests: EngineSuite {
  private struct Disk: StorageWrapper {
    let base: any Storage
    let free: Watched<Int64>
    func availableBytes() async throws -> Int64? { free.value }
  }

  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let free = Watched<Int64>(0)

  private func downloader(_ source: FakeSource, _ ledger: any Ledger) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      Disk(base: storage, free: free)
      Retry(.exponential(attempts: 5))
      ledger
    }
  }

  /// A file whose write fails for lack of space, the first time.
  private func source(holding: Bool = false) -> FakeSource {
    let full = FakeSource.Script(bytes).failing(after: 50_000, with: DownloadError(.noSpace, "the disk is full"))
    return FakeSource([url: [holding ? full.holding(after: 10_000) : full, .init(bytes)]])
  }

  @Test("A download goes on within two seconds after the disk has room")
  func room() async throws {
    let source = self.source()
    let downloader = try await downloader(source, ledger)
    let download = try await downloader.add(DownloadRequest(url))
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    free.update { $0 = 1 << 30 }
    let start = time.now
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(time.now - start <= .seconds(2))
    await downloader.shutdown()
  }

  /// The ledger is often on the same disk. The room that there is when it can be written again was missing before.
  @Test("A download goes on at once if the disk has room before the ledger can save the failure")
  func roomBeforeTheLedgerAnswers() async throws {
    let source = self.source(holding: true)
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(source, faulty)
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    try await settle(downloader)
    // From the failure on, the disk is full for the ledger, too.
    let exchanges = faulty.calls.count { $0 == .exchange }
    faulty.fail(.exchange, at: exchanges + 1, times: 3, with: DownloadError(.ledger, "the disk is full"))
    source.release()
    await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
    free.update { $0 = 1 << 30 }
    let start = time.now
    while try await !downloader.counts().keys.contains(.finished), time.now - start < .seconds(20) {
      _ = await time.advanceToNextSleeper()
    }
    _ = try await download.value
    #expect(time.now - start <= .seconds(8), "it took \(time.now - start)")
    await downloader.shutdown()
  }
}
