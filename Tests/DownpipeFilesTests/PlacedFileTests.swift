import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A file that a step has moved to its place, and that is fetched again.
@Suite(.endsHangs)
struct PlacedFileTests {
  private let folder: TemporaryFolder
  private let bytes = DownloadFixtures.pattern(size: 10_000)

  init() throws { folder = try TemporaryFolder() }

  /// A downloader whose last step fails a number of times.
  private func downloader(
    failing count: Int, with code: DownloadError.Code, _ decision: RetryDecision, _ policy: ConflictPolicy = .keepBoth
  ) async throws -> Downloader {
    let left = Watched(count)
    let (store, films) = (folder.path("store"), folder.path("films"))
    return try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource(everyURL: .init(bytes))
      FakeRetryPolicy { _ in decision }
      FileStore(store)
      MemoryLedger()
      MoveInto(films, onConflict: policy)
      Then { _, _ in
        left.update { $0 -= 1 }
        if left.value >= 0 { throw DownloadError(code, "not good") }
      }
    }
  }

  private func request() throws -> DownloadRequest {
    try DownloadRequest("https://example.org/film", id: "film", destination: .init(name: "film"))
  }

  private func checkFilms() throws {
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("films")) == ["film"])
    #expect(try folder.read("films/film") == bytes)
  }

  @Test("bytes that a later step finds damaged are replaced, not kept beside the good ones", arguments: [false, true])
  func damaged(refuses: Bool) async throws {
    let downloader = try await downloader(
      failing: 1, with: .damaged, .restart(after: .zero), refuses ? .fail : .keepBoth)
    _ = try await downloader.add(request()).value
    try checkFilms()
    await downloader.shutdown()
  }

  @Test("a restart replaces the file of a failed download", arguments: [false, true])
  func restarted(cancels: Bool) async throws {
    let downloader = try await downloader(failing: 1, with: .processing, .giveUp)
    let download = try await downloader.add(request())
    await #expect(throws: DownloadError.self) { _ = try await download.value }
    if cancels { try await download.cancel() }
    try await download.restart()
    _ = try await download.value
    try checkFilms()
    await downloader.shutdown()
  }

  @Test("the file of a failed download is removed with it")
  func removed() async throws {
    let downloader = try await downloader(failing: 1, with: .processing, .giveUp)
    let download = try await downloader.add(request())
    await #expect(throws: DownloadError.self) { _ = try await download.value }
    try await download.cancel()
    try await download.remove(deletingFile: true)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("films")) == [])
    await downloader.shutdown()
  }
}
