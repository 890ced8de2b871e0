import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Another program changes the partial of a running download.
@Suite(.endsHangs)
struct CutDownloadTests {
  private let bytes = DownloadFixtures.pattern(size: 3 << 20)
  private let url = URL(string: "https://example.org/file.bin")!

  private func downloader(_ folder: TemporaryFolder, _ source: FakeSource) async throws -> Downloader {
    try await Downloader(
      options: DownloaderOptions(time: VirtualTime(), checkpoints: CheckpointPolicy(bytes: 1 << 20))
    ) {
      source
      FakeRetryPolicy(.giveUp)
      FileStore(folder.path)
      MemoryLedger()
    }
  }

  private func partial(_ folder: TemporaryFolder) -> String { folder.path(".downpipe/partials/a.1.part") }

  /// Waits until the first checkpoint has given the partial its name.
  private func named(_ path: String) async {
    while !FileManager.default.fileExists(atPath: path) { await Task.yield() }
  }

  @Test("cut while it is written: the download fails instead of publishing zeros, and a resume fetches the file again")
  func cut() async throws {
    let folder = try TemporaryFolder()
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 2 << 20)]])
    let downloader = try await downloader(folder, source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await named(partial(folder))
    #expect(truncate(partial(folder), 0) == 0)
    source.release()
    await #expect {
      try await download.value
    } throws: {
      ($0 as? DownloadError)?.code == .storage
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path("file.bin")))
    try await download.resume()
    #expect(try await download.value.readBytes() == bytes)
    await downloader.shutdown()
  }

  @Test("a hard link that takes the place of a paused download's partial is not written through")
  func hardLink() async throws {
    let folder = try TemporaryFolder()
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 2 << 20), .init(bytes)]])
    let downloader = try await downloader(folder, source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await named(partial(folder))
    try await download.pause()
    source.release()
    // The same bytes, so that the check of the last block does not notice it.
    let other = folder.path("other")
    try FileManager.default.copyItem(atPath: partial(folder), toPath: other)
    try FileManager.default.removeItem(atPath: partial(folder))
    try FileManager.default.linkItem(atPath: other, toPath: partial(folder))
    let before = try Data(contentsOf: URL(filePath: other))
    try await download.resume()
    #expect(try await download.value.readBytes() == bytes)
    #expect(try Data(contentsOf: URL(filePath: other)) == before)
    await downloader.shutdown()
  }
}
