@_spi(Ledger) import DownpipeCore
import DownpipeService
import DownpipeTesting
import Foundation
import HangLimit
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@Suite(.endsHangs)
struct DownloaderServiceTests {
  /// A downloader with a download, "a", that stands still after 40,000 of its bytes.
  private struct HeldDownload {
    let source: FakeSource
    let ledger = MemoryLedger()
    let downloader: Downloader

    init() async throws {
      let url = try #require(URL(string: "https://example.org/file"))
      let source = FakeSource([url: [.init(DownloadFixtures.pattern(size: 100_000)).holding(after: 40_000)]])
      self.source = source
      downloader = try await Downloader { [ledger] in
        source
        FakeStorage()
        ledger
      }
      try await downloader.add(DownloadRequest(url, id: "a"))
      await source.held(atLeast: 1)
    }

    /// The transfer has stopped, and the ledger has its bytes.
    func expectSuspended(_ location: SourceLocation = #_sourceLocation) async throws {
      #expect(source.stops == 1, sourceLocation: location)
      let store = try await ledger.open()
      let record = try #require(try await store.record("a"), sourceLocation: location)
      #expect(record.phase == .waiting, sourceLocation: location)
      #expect(record.checkpoint.ranges.prefixLength == 40_000, sourceLocation: location)
      try await store.close()
    }
  }

  private struct Failure: Error {}

  private static func group(_ service: DownloaderService) -> ServiceGroup {
    ServiceGroup(
      configuration: .init(
        services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
        logger: Logger(label: "test")))
  }

  @Test func aGracefulShutdownEndsTransfersAtACheckpoint() async throws {
    let held = try await HeldDownload()
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await DownloaderService(held.downloader).run() }
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    try await held.expectSuspended()
  }

  @Test("a group whose service waits for its downloads shuts down without an error")
  func groupWithWork() async throws {
    let held = try await HeldDownload()
    let (works, working) = AsyncStream.makeStream(of: Void.self)
    let group = Self.group(
      DownloaderService(held.downloader) { downloader in
        working.finish()
        try await downloader.waitUntilIdle()
      })
    async let end: Void = group.run()
    for await _ in works {}
    await group.triggerGracefulShutdown()
    try await end
    try await held.expectSuspended()
  }

  @Test("work that ignores its cancellation ends because the downloader has shut down")
  func workWithoutCancellation() async throws {
    let held = try await HeldDownload()
    let (works, working) = AsyncStream.makeStream(of: Void.self)
    let group = Self.group(
      DownloaderService(held.downloader) { downloader in
        let wait = Task { try await downloader.waitUntilIdle() }
        working.finish()
        try await wait.value
      })
    async let end: Void = group.run()
    for await _ in works {}
    await group.triggerGracefulShutdown()
    try await end
    try await held.expectSuspended()
  }

  @Test("a group whose service has no more work ends, and the downloader with it")
  func workEnds() async throws {
    let held = try await HeldDownload()
    try await Self.group(DownloaderService(held.downloader) { _ in }).run()
    try await held.expectSuspended()
  }

  @Test("the error of the work is that of the group, after the transfers have stopped")
  func workFails() async throws {
    let held = try await HeldDownload()
    await #expect(throws: Failure.self) {
      try await Self.group(DownloaderService(held.downloader) { _ in throw Failure() }).run()
    }
    try await held.expectSuspended()
  }

  @Test("a cancellation stops the transfers, and is no error of the service")
  func cancellation() async throws {
    let held = try await HeldDownload()
    let service = DownloaderService(held.downloader) { try await $0.waitUntilIdle() }
    let run = Task { try await service.run() }
    run.cancel()
    try await run.value
    try await held.expectSuspended()
  }
}
