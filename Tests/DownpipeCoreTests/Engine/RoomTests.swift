@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
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
  private func source() -> FakeSource {
    let full = FakeSource.Script(bytes).failing(after: 50_000, with: DownloadError(.noSpace, "the disk is full"))
    return FakeSource([url: [full, .init(bytes)]])
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

  @Test("A download goes on although the disk had room again before the ledger could save the failure")
  func roomBeforeTheLedgerAnswers() async throws {
    let faulty = FaultyLedger(ledger)
    let full = FakeSource.Script(bytes).holding(after: 10_000)
      .failing(after: 50_000, with: DownloadError(.noSpace, "the disk is full"))
    let source = FakeSource([url: [full, .init(bytes)]])
    let downloader = try await downloader(source, faulty)
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    try await settle(downloader)
    // The first attempt, the one after the partial was cut, and one more after a second.
    faulty.fail(
      .exchange, at: faulty.calls.count { $0 == .exchange } + 1, times: 3,
      with: DownloadError(.ledger, "the disk is full"))
    source.release()
    await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
    free.update { $0 = 1 << 30 }
    for _ in 0..<2 {
      await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
      time.advance(by: .seconds(1))
    }
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(time.now == .seconds(3))
    await downloader.shutdown()
  }
}
