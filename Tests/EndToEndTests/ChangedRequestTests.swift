import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Requests that change, with a real server, real files and a real ledger.
  @Suite struct ChangedRequestTests {
    private static let old = ScriptedContent.pattern(size: 3 << 20, seed: 301)
    private static let new = ScriptedContent.pattern(size: 3 << 20, seed: 302)

    private func downloader(_ folder: TemporaryFolder) async throws -> Downloader {
      try await Downloader {
        HTTPSource()
        Retry(.constant(.zero, attempts: 2))
        FileStore(folder.path("files"))
        SQLiteLedger(folder.path("ledger.sqlite"))
        VerifyChecksum()
      }
    }

    @Test("the new URL of a running download is the file that lands", arguments: [true, false])
    func aNewURLOfARunningDownload(isSame: Bool) async throws {
      let (folder, gate) = (try TemporaryFolder(), ServerGate())
      let content = isSame ? Self.old : Self.new
      try await withScriptedServer { request in
        request.path == "/old"
          ? .file(Self.old, etag: "\"old\"", for: request).held(at: gate, after: 2 << 20)
          : .file(content, etag: "\"new\"", for: request)
      } _: { server in
        let downloader = try await downloader(folder)
        let request = DownloadRequest(server.url("/old"), id: "a", destination: .init(name: "film"))
        let download = try await downloader.add(request)
        await gate.arrivals(1)
        for await event in download.events {
          if case .progress(let progress) = event.kind, progress.received >= 2 << 20 { break }
        }
        try await download.update { $0.url = server.url("/new") }
        let artifact = try await download.value
        gate.open()
        let isRight = try folder.read("files/film") == content.allBytes
        #expect(isRight && artifact.name == "film")
        #expect(server.requests.dropFirst().allSatisfy { $0.path == "/new" })
        #expect((server.requests[1].range?.start ?? 0) > 1 << 20, "it goes on where it was")
        #expect(try await download.status.request.url == server.url("/new"))
        await downloader.shutdown()
      }
    }

    @Test func aFinishedDownloadThatIsAskedForAgainReplacesItsFile() async throws {
      let folder = try TemporaryFolder()
      try await withScriptedServer { request in
        .file(request.path == "/old" ? Self.old : Self.new, for: request)
      } _: { server in
        let downloader = try await downloader(folder)
        let request = DownloadRequest(server.url("/old"), id: "a", destination: .init(name: "film"))
        _ = try await downloader.add(request).value
        var changed = request
        changed.url = server.url("/new")
        let wrong = FileDigest(.crc32, bytes: [0, 0, 0, 0])
        changed.expectedDigests = [wrong]
        let download = try await downloader.add(changed)
        #expect(download.isNew)
        await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .digestMismatch }
        let isKept = try folder.read("files/film") == Self.old.allBytes
        #expect(isKept, "the old file stays while there is no right one")
        changed.expectedDigests = []
        let artifact = try await downloader.add(changed).value
        let isReplaced = try folder.read("files/film") == Self.new.allBytes
        #expect(isReplaced && artifact.path == folder.path("files/film"))
        #expect(
          try FileManager.default.contentsOfDirectory(atPath: folder.path("files")).filter { !$0.hasPrefix(".") } == [
            "film"
          ])
        let count = server.requests.count
        _ = try await downloader.add(changed).value
        #expect(server.requests.count == count, "asked for again, nothing is fetched")
        await downloader.shutdown()
      }
    }
  }
}
