import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Downloads without failures, with fakes for all stages.
@Suite(.endsHangs)
struct DownloaderTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func downloadsAndPublishes() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    let status = try await download.status
    #expect(status.state == .finished(artifact))
    #expect(status.attempts == 1)
    #expect(status.bytesFetched == 100_000)
    #expect(status.progress.fraction == 1)
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    #expect(source.stops == 1)
    #expect(storage.openPartials == 0)
    #expect(storage.partials.isEmpty)
  }

  @Test func addingAgainWhileItRunsUpdatesIt() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 10_000)]])
    let downloader = try await downloader(source)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let again = try await downloader.add(DownloadRequest(url, id: "a", priority: .high).with(\.metadata, ["who": "me"]))
    #expect(!again.isNew)
    let status = try await again.status
    #expect(status.request.priority == .high)
    #expect(status.request.metadata == ["who": "me"])
    source.release()
    _ = try await again.value
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test func aFinishedDownloadIsNotFetchedAgainUnlessItsFileIsGone() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(source.requests.count == 1)
    try await storage.remove(artifact)
    let again = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: again) == bytes)
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func badRequestsAreRefusedBeforeAnythingIsStored() async throws {
    let downloader = try await downloader(FakeSource([url: [.init(bytes)]]))
    let unknown = try DownloadRequest("gopher://example.org/", id: "g")
    await #expect { try await downloader.add(unknown) } throws: { ($0 as? DownloadError)?.code == .unsupportedURL }
    let header = DownloadRequest(url).with(\.headers, ["X": "a\r\nHost: evil"])
    await #expect { try await downloader.add(header) } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    let nameless = DownloadRequest(url, id: "")
    await #expect { try await downloader.add(nameless) } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    let elsewhere = DownloadRequest(url, id: "e", destination: .init(directory: "../..", name: "x"))
    for isAdded in [true, false] {
      await #expect {
        if isAdded { try await downloader.add(elsewhere) } else { try await downloader.validate(elsewhere) }
      } throws: { ($0 as? DownloadError)?.code == .unsafePath && ($0 as? DownloadError)?.stage == "FakeStorage" }
    }
    #expect(try await downloader.download("e") == nil)
    await #expect { try await downloader.pause("unknown") } throws: {
      ($0 as? DownloadError)?.code == .invalidRequest
    }
    #expect(try await downloader.statuses().isEmpty)
    await downloader.shutdown()
  }
}
