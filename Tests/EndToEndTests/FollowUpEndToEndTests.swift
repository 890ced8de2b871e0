import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if SQLite
  extension EndToEnd {
    /// Downloads that follow from the file of another one, with files on disk and a ledger that outlives the process.
    @Suite struct FollowUpTests {
      private func downloader(_ folder: TemporaryFolder) async throws -> Downloader {
        try await Downloader {
          HTTPSource()
          FileStore(folder.path("out"))
          SQLiteLedger(folder.path("ledger.sqlite"))
          Limits(concurrent: 2)
          Retry(.exponential(attempts: 1))
          VerifyChecksum()
          FollowUp(waitsForChildren: true) { list in
            guard list.name == "list", let path = list.path else { return [] }
            let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            return try lines.map { try DownloadRequest(String($0), destination: .init(directory: "files")) }
          }
        }
      }

      @Test("a list finishes after its files, also when the downloader ends in between")
      func list() async throws {
        let held = ServerGate()
        let content = ScriptedContent.pattern(size: 300_000)
        let list = Watched("")
        let server = try await ScriptedHTTPServer.start { request in
          if request.path == "/list" { return .file(.text(list.value), etag: "\"l\"", for: request) }
          let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
          return request.headers["Range"] == nil ? reply.held(at: held, after: 100_000) : reply
        }
        list.update { $0 = "\(server.url("/a"))\n\(server.url("/b"))" }
        let folder = try TemporaryFolder()
        let first = try await downloader(folder)
        let parent = try await first.add(DownloadRequest("\(server.url("/list"))", id: "root"))
        // The list waits, or its files would not both run.
        for await event in parent.events {
          if case .state(.waiting(.dependency)) = event.kind { break }
        }
        let waiting = try await parent.status
        #expect(waiting.request.after.count == 2)
        #expect(!FileManager.default.fileExists(atPath: folder.path("out/list")), "it is not published yet")
        await first.shutdown()

        held.open()
        let second = try await downloader(folder)
        let again = try #require(try await second.download("root"))
        let artifact = try await again.value
        #expect(artifact.path == folder.path("out/list"))
        #expect(try folder.read("out/list") == Array(list.value.utf8))
        for name in ["a", "b"] { #expect(try folder.read("out/files/\(name)") == content.allBytes) }
        #expect(try await second.statuses().count == 3)
        #expect(server.requests.count { $0.path == "/list" } == 1, "the list is fetched once")
        await second.shutdown()
        let rest = try folder.contents().filter { $0.contains("/partials/") || $0.contains("/work/") }
        #expect(rest == [])
        await server.shutdown()
      }

      @Test("two owners of one ledger that follow one list fetch each file once")
      func twoOwners() async throws {
        let content = ScriptedContent.pattern(size: 300_000)
        let list = Watched("")
        let server = try await ScriptedHTTPServer.start { request in
          request.path == "/list"
            ? .file(.text(list.value), etag: "\"l\"", for: request) : .file(content, etag: "\"v1\"", for: request)
        }
        let names = (0..<20).map { "file-\($0)" }
        list.update { $0 = names.map { "\(server.url("/\($0)"))" }.joined(separator: "\n") }
        let folder = try TemporaryFolder()
        let (first, second) = (try await downloader(folder), try await downloader(folder))
        let root = try DownloadRequest("\(server.url("/list"))", id: "root")
        try await withThrowingTaskGroup(of: String?.self) { group in
          for downloader in [first, second] {
            group.addTask { try await downloader.add(root).value.path }
          }
          for try await path in group { #expect(path == folder.path("out/list")) }
        }
        for name in names { #expect(try folder.read("out/files/\(name)") == content.allBytes) }
        #expect(try await first.statuses().count == 21)
        #expect(server.requests.count == 21, "\(server.requests.map(\.path))")
        await first.shutdown()
        await second.shutdown()
        await server.shutdown()
        let rest = try folder.contents().filter { $0.contains("/partials/") || $0.contains("/work/") }
        #expect(rest == [])
      }
    }
  }
#endif
