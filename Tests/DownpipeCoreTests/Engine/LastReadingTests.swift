import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Defects that a second review of the engine has found.
@Suite(.endsHangs)
struct LastReadingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("shutdown does not wait for an observer that waits until the downloader is idle")
  func shutdownBesideAWaitingObserver() async throws {
    let box = Watched<Downloader?>(nil)
    let observer = IdleObserver(downloader: box)
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes).holding(after: 0))
      storage
      ledger
      observer
    }
    box.update { $0 = downloader }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await observer.waits.wait { $0 }
    await downloader.shutdown()
    box.update { $0 = nil }
  }

  @Test("a step that cancels its own download ends with it")
  func aStepThatCancelsItself() async throws {
    let box = Watched<Downloader?>(nil)
    let step = FakePostProcessor<File, File>(name: "Impatient") { file, _ in
      try await box.value?.cancel("a")
      return file
    }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      ledger
      step
    }
    box.update { $0 = downloader }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .cancelled }
    await downloader.shutdown()
    box.update { $0 = nil }
  }

  @Test("after a restart the bytes whose flush failed are not claimed")
  func restartsForgetWhatWasDurable() async throws {
    let cut = DownloadError(.network, "cut")
    let other = DownloadFixtures.pattern(size: 100_000, seed: 7)
    // 60,000 bytes of one file; then another file without ranges, which is interrupted at 30,000 when the disk fails.
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 60_000, with: cut),
        FakeSource.Script(other).with {
          $0.honoursRanges = false
          $0.validator = Validator(entityTag: EntityTag("other"))
        }.failing(after: 30_000, with: cut),
      ]
    ])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.giveUp))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(try await download.status.progress.received == 60_000)
    storage.fail(.synchronize, at: 3, with: DownloadError(.storage, "the disk lost them"))
    try await download.resume()
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(try await download.status.progress.received == 60_000, "those of the earlier version are still there")
    await downloader.shutdown()
  }
}

/// Waits until the downloader is idle instead of reading events.
private struct IdleObserver: Observer {
  let downloader: Watched<Downloader?>
  let waits = Watched(false)

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    await downloader.wait { $0 != nil }
    waits.update { $0 = true }
    try? await downloader.value?.waitUntilIdle()
  }
}
