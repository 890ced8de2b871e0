import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Parents that wait for downloads that follow from their files.
@Suite(.endsHangs)
struct FollowUpReleaseTests {
  @Test("a dependency on a child that is taken away lets the parent finish")
  func releasing() async throws {
    let folder = try TemporaryFolder()
    let list = try #require(URL(string: "https://example.org/list"))
    let child = try #require(URL(string: "https://a.test/1"))
    let downloader = try await Downloader {
      FakeSource([
        list: [.init([1, 2, 3])], child: [.failingToOpen(DownloadError(.tls, "the certificate has expired"))],
      ])
      FakeRetryPolicy(.giveUp)
      FileStore(folder.path)
      MemoryLedger()
      FollowUp(waitsForChildren: true) { _, context in
        context.request.id == "root" ? [DownloadRequest(child)] : []
      }
    }
    let download = try await downloader.add(DownloadRequest(list, id: "root"))
    try await downloader.waitUntilIdle()
    let failed = try #require(try await downloader.statuses().first { $0.state.phase == .failed })
    #expect(try await download.status.state == .waiting(.dependency(failed.id, .failed)))
    try await download.update { $0.after.subtract([failed.id]) }
    _ = try await download.value
    #expect(try folder.read("list") == [1, 2, 3])
    #expect(try await downloader.status(of: failed.id)?.state.phase == .failed)
    await downloader.shutdown()
    folder.close()
  }
}
