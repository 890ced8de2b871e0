import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import Testing

/// Transports that hand over a finished file, which the storage moves.
@Suite(.timeLimit(.minutes(1)))
struct FinishedFileTests {
  @Test func aMovedFileCountsAsFetched() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let file = folder.url.appending(path: "of the transport")
    try Data(DownloadFixtures.pattern(size: 5000)).write(to: file)
    let observer = RecordingObserver()
    let downloader = try await Downloader {
      FinishedFile(path: file.path(percentEncoded: false))
      FileStore(folder.url.appending(path: "store").path(percentEncoded: false))
      observer
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
    _ = try await download.value
    #expect(try await download.status.bytesFetched == 5000)
    #expect(!FileManager.default.fileExists(atPath: file.path(percentEncoded: false)), "the file was copied")
    await downloader.shutdown()
    let fetched = observer.events(of: "a").compactMap {
      if case .progress(let progress) = $0 { progress.fetched } else { nil }
    }
    #expect(fetched.contains(5000))
  }
}

private struct FinishedFile: Source, SourceSession {
  let path: String

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    SourceReply(
      coverage: .whole, length: .known(5000),
      body: Body(file: path) { _ in throw DownloadError(.network, "the bytes were read from the file") })
  }
}
