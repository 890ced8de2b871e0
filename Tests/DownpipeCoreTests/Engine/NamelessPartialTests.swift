import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The partial of a new download has no name before its first checkpoint, and naming it may fail.
@Suite(.endsHangs)
struct NamelessPartialTests {
  let bytes = DownloadFixtures.pattern(size: 200_000)
  let url = URL(string: "https://example.org/file.bin")!
  let storage = FakeStorage()
  let compared: Int64 = 65_536

  private func downloader(
    _ source: FakeSource, _ probe: ProbeStorage, checkpoints: CheckpointPolicy = CheckpointPolicy()
  ) async throws -> Downloader {
    try await Downloader(
      options: DownloaderOptions(time: VirtualTime(), checkpoints: checkpoints, lease: .seconds(600))
    ) {
      source
      FakeRetryPolicy(.resume(after: .zero))
      AnyStorage(probe)
      AnyLedger(MemoryLedger())
    }
  }

  /// Without a name all received bytes would be lost.
  @Test func aFullDiskGivesTheLastBytesForTheName() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let probe = ProbeStorage(storage)
    let full = DownloadError(.noSpace, "full")
    storage.fail(.write, at: 11, with: full)
    storage.fail(.synchronize, with: full)
    let downloader = try await downloader(source, probe)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    let kept: Int64 = 10 * 16_384 - 65_536
    #expect(try await download.status.resumedFrom == kept)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: kept - compared)])
    await downloader.shutdown()
  }

  /// The checkpoint fails on the full disk before a write does.
  @Test func aCheckpointOnAFullDiskLosesNothing() async throws {
    let bytes = DownloadFixtures.pattern(size: 500_000)
    let source = FakeSource([url: [.init(bytes)]])
    let probe = ProbeStorage(storage)
    // However early that is noticed, more is left than is compared before the download goes on.
    storage.fail(.synchronize, times: 2, with: DownloadError(.noSpace, "full"))
    let downloader = try await downloader(source, probe, checkpoints: CheckpointPolicy(bytes: 200_000))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.resumedFrom > 0)
    #expect(source.requests.last?.range != nil)
    await downloader.shutdown()
  }

  /// Otherwise each attempt would download the bytes of a checkpoint again, only to fail.
  @Test func aNameThatWasHeldIsClaimedBeforeMoreIsFetched() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let probe = ProbeStorage(storage)
    storage.fail(.synchronize, times: 2, with: DownloadError(.inUse, "held"))
    let downloader = try await downloader(source, probe, checkpoints: CheckpointPolicy(bytes: 100_000))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(probe.openings == [true, false])
    await downloader.shutdown()
  }
}
