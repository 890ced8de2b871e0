import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Runs whose lease is lost, and the runs after them.
@Suite(.endsHangs)
struct LostLeaseTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func aRunThatLostItsLeaseEndsWithoutHarmAndLeavesNothing() async throws {
    let open = OpenLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: open)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await open.forget("a")
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.status(of: "a") == nil)
    #expect(storage.published.isEmpty && storage.partials.isEmpty && storage.openPartials == 0)
    // The slot is free again.
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "b")).value) == bytes)
    await downloader.shutdown()
  }

  @Test("a command for a run that another owner has removed has no effect")
  func pauseOfARemovedDownload() async throws {
    let open = OpenLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: open)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await open.forget("a")
    await #expect(throws: DownloadError.unknownDownload("a")) { try await downloader.pause("a") }
    #expect(try await downloader.pauseAll() == 0)
    await downloader.shutdown()
  }

  @Test("a new run of the same download waits until the old one has ended")
  func oneAfterTheOther() async throws {
    let open = OpenLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes))
    // The old run is in a step that ignores cancellation.
    let isHeld = Watched(true)
    let step = FakePostProcessor<File, File>(name: "Slow") { file, _ in
      await Task { await isHeld.wait { !$0 } }.value
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      storage
      open
      FakeRetryPolicy(.giveUp)
      step
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await step.calls(atLeast: 1)
    try await open.forget("a")
    let again = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(again.isNew)
    try await settle(downloader)
    #expect(source.requests.count == 1, "the new run has not begun")
    #expect(storage.openPartials == 1)
    isHeld.update { $0 = false }
    #expect(storage.bytes(of: try await again.value) == bytes)
    #expect(source.requests.count == 2)
    #expect(storage.published.count == 1)
    try await downloader.waitUntilIdle()
    #expect(storage.openPartials == 0)
    await downloader.shutdown()
  }
}
