import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Finished files whose server is asked whether they have changed, by the tool, over its sources.
  @Suite struct RefreshTests {
    private struct Version: Sendable {
      var text = "first"
      var etag: String? = "\"v1\""
      var modified: Date?
      var cacheControl: String?
    }

    private func conditions(_ run: DefectRun) -> [String?] {
      run.server.requests.map { $0.headers["If-None-Match"] ?? $0.headers["If-Modified-Since"] }
    }

    @Test("an unchanged file is not sent again, and a changed one takes its place", arguments: ["curl", "urlsession"])
    func changes(_ source: String) async throws {
      let version = Watched(Version())
      try await DefectRun.with { request in
        if request.path == "/latest" { return ScriptedReply(302, ["Location": "/files/film"]) }
        let version = version.value
        return .file(.text(version.text), etag: version.etag, for: request)
      } _: { run in
        func get(_ more: [String] = []) async throws {
          let outcome = try await run.get(["/latest"], ["--source", source, "-o", "film"] + more)
          #expect(outcome.status == 0, "\(outcome.everything)")
        }
        try await get()
        try await get()
        #expect(run.server.requests.count == 2, "a finished file is not asked about")
        try await get(["--refresh"])
        // The question goes to the target of the redirect, too.
        #expect(conditions(run) == [nil, nil, "\"v1\"", "\"v1\""])
        #expect(try run.folder.read("out/film") == Array("first".utf8))
        version.update { $0 = Version(text: "second", etag: "W/\"v2\"") }
        try await get(["--refresh"])
        #expect(try run.folder.read("out/film") == Array("second".utf8))
        // A weak tag is as good for this question.
        try await get(["--refresh"])
        #expect(conditions(run).suffix(2) == ["W/\"v2\"", "W/\"v2\""])
        #expect(run.server.requests.count == 8)
        let files = try FileManager.default.contentsOfDirectory(atPath: run.folder.path("out"))
        #expect(files.sorted() == [".downpipe", "film"])
      }
    }

    @Test("without an entity tag the date is asked with, and freshness is kept over the end of the process")
    func dates() async throws {
      let date = Date(timeIntervalSince1970: 1_000_000_000)
      let version = Watched(Version(etag: nil, modified: date, cacheControl: "max-age=3600"))
      try await DefectRun.with { request in
        let version = version.value
        return .file(
          .text(version.text), lastModified: version.modified, cacheControl: version.cacheControl, for: request)
      } _: { run in
        for (option, count) in [(nil, 1), ("--refresh-stale", 1), ("--refresh", 2), ("--refresh-stale", 2)] {
          let outcome = try await run.get(["/film"], [option].compactMap(\.self))
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(run.server.requests.count == count)
        }
        #expect(conditions(run) == [nil, "Sun, 09 Sep 2001 01:46:40 GMT"])
        // An older file than before: its server has not changed it since that date, but it is another one.
        version.update {
          $0.text = "older"
          $0.modified = date.addingTimeInterval(-86_400)
        }
        #expect(try await run.get(["/film"], ["--refresh"]).status == 0)
        #expect(try run.folder.read("out/film") == Array("older".utf8))
        #expect(conditions(run).count == 4 && conditions(run).last == .some(nil))
      }
    }

    @Test("the tag of a coded file is asked with, and the decoded file stays")
    func codings() async throws {
      // “hello\n”, by `gzip -n`.
      let coded: [UInt8] = [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xE7, 2, 0, 0x20, 0x30, 0x3A, 0x36, 6, 0, 0,
        0,
      ]
      try await DefectRun.with { request in
        if request.headers["If-None-Match"] == "\"coded\"" {
          return ScriptedReply([.head(304, ["ETag": "\"coded\"", "Content-Encoding": "gzip"])])
        }
        return ScriptedReply(200, ["Content-Encoding": "gzip", "ETag": "\"coded\""], body: .bytes(coded))
      } _: { run in
        for _ in 0..<2 {
          let outcome = try await run.get(["/hello.txt"], ["--refresh"])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("out/hello.txt") == Array("hello\n".utf8))
        }
        #expect(conditions(run) == [nil, "\"coded\""])
        #expect(run.server.requests.allSatisfy { $0.headers["Accept-Encoding"] == "identity" })
      }
    }

    @Test("a refresh that fails leaves the file and the exit status 1; the next one asks again")
    func failures() async throws {
      let isDown = Watched(false)
      try await DefectRun.with { request in
        isDown.value ? ScriptedReply(404, [:]) : .file(.text("film"), etag: "\"v1\"", for: request)
      } _: { run in
        let first = try await run.get(["/film"])
        #expect(first.status == 0, "\(first.everything)")
        isDown.update { $0 = true }
        #expect(try await run.get(["/film"], ["--refresh", "--retry", "0"]).status == 1)
        #expect(try run.folder.read("out/film") == Array("film".utf8))
        isDown.update { $0 = false }
        #expect(try await run.get(["/film"], ["--refresh"]).status == 0)
        #expect(conditions(run) == [nil, "\"v1\"", "\"v1\""])
      }
    }
  }
}
