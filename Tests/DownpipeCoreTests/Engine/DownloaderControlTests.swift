import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The commands of users: pause, resume, cancel, remove.
@Suite(.endsHangs)
struct DownloaderControlTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func pausingFreesThePlaceAndKeepsTheBytes() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    #expect(try await download.pause())
    #expect(try await download.status.state == .paused)
    #expect(source.readers == 0)
    #expect(storage.openPartials == 0)
    #expect(try await download.pause() == false)
    try await downloader.waitUntilIdle()
    #expect(try await download.resume())
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(try await download.status.resumedFrom == 40_000)
    await downloader.shutdown()
  }

  @Test func addedPausedNothingIsFetchedBeforeItIsResumed() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"), paused: true)
    #expect(download.isNew)
    #expect(try await download.status.state == .paused)
    try await downloader.waitUntilIdle()
    #expect(source.requests.isEmpty)
    // A known download keeps its phase.
    #expect(try await downloader.add(DownloadRequest(url, id: "a")).status.state == .paused)
    #expect(try await download.resume())
    #expect(storage.bytes(of: try await download.value) == bytes)
    _ = try await downloader.add(DownloadRequest(url, id: "a"), paused: true)
    #expect(try await download.status.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test func cancellingRemovesTheBytes() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let value = Task { try await download.value }
    #expect(try await download.cancel())
    await #expect { try await value.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
    #expect(storage.partials.isEmpty)
    #expect(try await download.status.progress.received == 0)
    #expect(try await downloader.restart("a"))
    _ = try await download.value
    #expect(source.requests.last?.range == nil)
    await downloader.shutdown()
  }

  @Test func removingAndAddingTheSameIdAgainAndAgain() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source)
    for round in 1...5 {
      let download = try await downloader.add(DownloadRequest(url, id: "a"))
      #expect(download.isNew)
      await source.requests(atLeast: round)
      await source.held(atLeast: 1)
      #expect(try await download.remove())
      #expect(storage.partials.isEmpty)
      #expect(try await downloader.status(of: "a") == nil)
    }
    source.release()
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    await downloader.shutdown()
  }

  @Test func bulkOperationsReachWhatWaitsAndWhatRuns() async throws {
    let urls = (0..<20).map { URL(string: "https://host\($0).example/f")! }
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(
      contentsOf: urls.enumerated().map { index, url in
        DownloadRequest(url, id: DownloadID("d\(index)"), tags: index < 10 ? ["first"] : [])
      })
    await source.held(atLeast: 5)
    #expect(try await downloader.pauseAll(.tag("first")) == 10)
    #expect(try await downloader.counts(.tag("first")) == [.paused: 10])
    await source.held(atLeast: 5)
    #expect(try await downloader.pauseAll() == 10)
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.paused: 20])
    #expect(try await downloader.resumeAll(.tag("first")) == 10)
    #expect(try await downloader.cancelAll(.tag("first")) == 10)
    #expect(
      storage.partials.keys.allSatisfy { key in urls.indices.dropFirst(10).contains { "d\($0)" == key.id.rawValue } })
    #expect(try await downloader.removeAll() == 20)
    #expect(try await downloader.counts().values.reduce(0, +) == 0)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }
}
