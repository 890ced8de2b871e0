@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// Files of downloads whose links have expired and were refreshed.
@Suite(.endsHangs)
struct RefreshedLinkTests {
  private let bytes = DownloadFixtures.pattern(size: 100_000)
  private let url = URL(string: "https://example.org/film")!
  private let fresh = URL(string: "https://cdn.example.net/film?key=2")!

  /// A ledger whose owner ends when a test says so, like a process that is killed.
  private final class MortalLedger: Ledger {
    private let base = MemoryLedger()
    private let opened = Watched<(any LedgerStore)?>(nil)

    func open() async throws -> any LedgerStore {
      let store = try await base.open()
      opened.update { $0 = store }
      return store
    }

    /// From now on nothing of the owner reaches the ledger, and what it held is reclaimed.
    func die() async throws { try await opened.value?.close() }
  }

  @Test("The process ends after the file was moved and before that is recorded: the file is found, not moved twice")
  func endAfterTheMove() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let films = folder.path("films")
    let (ledger, isDead) = (MortalLedger(), Watched(false))
    let source = FakeSource([url: [.status(403)], fresh: [.init(bytes)]])
    let refresher = FakeLinkRefresher { [fresh] _ in FreshLink(fresh) }
    let retry = Retry(.constant(.zero, attempts: 3))
    let dying = FakePostProcessor<File, File>(name: "MoveInto") { file, context in
      let moved = try await MoveInto(films).process(file.artifact, in: context)
      try await ledger.die()
      isDead.update { $0 = true }
      // Nothing more is done until the downloader is shut down.
      for await _ in AsyncStream<Never>(Never.self, { _ in }) {}
      return File(moved)
    }
    let first = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      refresher
      retry
      FileStore(folder.path("store"))
      ledger
      dying
    }
    try await first.add(DownloadRequest(url, id: "film", destination: .init(name: "film.mkv")))
    await isDead.wait { $0 }
    await first.shutdown()
    #expect(try folder.tree("films") == ["films/film.mkv": bytes])

    let second = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      refresher
      retry
      FileStore(folder.path("store"))
      ledger
      MoveInto(films)
    }
    let download = try #require(try await second.download("film"))
    let artifact = try await download.value
    #expect(artifact.path == folder.path("films/film.mkv"))
    #expect(try folder.tree("films") == ["films/film.mkv": bytes])
    #expect(source.requests.map(\.url) == [url, fresh])
    #expect(try await download.status.request.url == fresh)
    await second.shutdown()
  }
}
