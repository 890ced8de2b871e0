import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// The published file is the file of the server, even if the bytes on disk were changed meanwhile.
  @Suite(.serialized) struct ContentIdentityTests {
    static let size: Int64 = 8 << 20
    /// After the first checkpoint.
    static let kept = Checkpoints.passed
    static let old = ScriptedContent.pattern(size: size, seed: 1)
    static let new = ScriptedContent.pattern(size: size, seed: 2)

    // MARK: Resuming

    @Test func anUnchangedTagOfAChangedFileMixesNothing() async throws {
      let held = ServerGate()
      try await DefectRun.with { request in
        request.number == 1
          ? ScriptedReply.file(Self.old, etag: "\"v1\"", for: request).held(at: held, after: Self.kept)
          : ScriptedReply.file(Self.new, etag: "\"v1\"", for: request)
      } _: { run in
        try await run.getInterrupted("/film", at: Self.kept)
        let outcome = try await run.get(["/film"])
        held.open()
        #expect(outcome.status == 1 && outcome.everything.contains("contentChanged"), "\(outcome.everything)")
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/film")), "neither file is published")
        // A restart by hand takes the new file.
        let restarted = try await run.tool(["restart", "--failed", "--json", "-d", run.folder.path("out")])
        #expect(restarted.status == 0, "\(restarted.everything)")
        let isNew = try run.folder.read("out/film") == Self.new.allBytes
        #expect(isNew, "the file differs from the one of the server")
      }
    }

    @Test func goingOnFetchesTheLast64KiBAgain() async throws {
      let held = ServerGate()
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(Self.old, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: held, after: Self.kept) : reply
      } _: { run in
        try await run.getInterrupted("/film", at: Self.kept)
        let outcome = try await run.get(["/film"])
        held.open()
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(run.server.requests.map { $0.range?.start ?? 0 } == [0, Checkpoints.start(behind: Self.kept)])
        let isIdentical = try run.published(by: outcome) == Self.old.allBytes
        #expect(isIdentical)
      }
    }

    /// The bytes come from elsewhere, and only the last of them are those of the server.
    @Test(arguments: [1000, 65_536, 200_000])
    func anImportedPartialIsComparedByMoreThanItsLastByte(_ count: Int) async throws {
      let content = ScriptedContent.pattern(size: 400_000, seed: 5)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        var partial = content.bytes(in: 0..<Int64(count))
        for index in partial.indices.dropLast() { partial[index] ^= 0xFF }
        let file = try run.folder.write(partial, to: "CFNetworkDownload_a.tmp")
        let resumeData = try run.folder.write(
          Array(Self.resumeData(run.server.url("/film"), count: count).utf8), to: "film.resume")
        let outcome = try await run.tool([
          "import-resume-data", resumeData, "--partial", file, "-d", run.folder.path("out"), "--json",
        ])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let isIdentical = try run.published(by: outcome) == content.allBytes
        #expect(isIdentical, "the file differs from the one of the server")
      }
    }

    private static func resumeData(_ url: URL, count: Int) -> String {
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0"><dict>
      <key>NSURLSessionDownloadURL</key><string>\(url)</string>
      <key>NSURLSessionResumeBytesReceived</key><integer>\(count)</integer>
      <key>NSURLSessionResumeEntityTag</key><string>"v1"</string>
      <key>NSURLSessionResumeInfoTempFileName</key><string>CFNetworkDownload_a.tmp</string>
      <key>NSURLSessionResumeInfoVersion</key><integer>2</integer>
      </dict></plist>
      """
    }

    // MARK: While the partial is written

    /// Another program replaces the partial with a copy.
    @Test(arguments: [200_000, kept])
    func aPartialThatIsReplacedIsNotPublishedShort(_ before: Int64) async throws {
      let content = ScriptedContent.pattern(size: before == 200_000 ? 400_000 : Self.size, seed: 9)
      let held = ServerGate()
      defer { held.open() }
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: held, after: before) : reply
      } _: { run in
        let partials = run.folder.path("out/.downpipe/partials")
        let wasReplaced = Watched(false)
        let outcome = try await run.get(["/film"], ["--retry", "1"]) { line, _ in
          guard ToolLine(line)?.bytes == before, !held.isOpen else { return }
          if let path = Checkpoints.namedPartial(in: partials) {
            _ = try? FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
            if rename(path + ".copy", path) == 0 { wasReplaced.update { $0 = true } }
          }
          held.open()
        }
        #expect(wasReplaced.value)
        guard outcome.status == 0 else {
          #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/film")))
          return
        }
        let published = try run.published(by: outcome)
        #expect(published.count == Int(content.size))
        let isIdentical = published == content.allBytes
        #expect(isIdentical, "the file differs from the one of the server")
      }
    }

    // MARK: Finished downloads

    @Test(arguments: ["truncated", "grown", "emptied", "removed"])
    func aChangedFinishedFileIsFetchedAgain(_ change: String) async throws {
      let content = ScriptedContent.pattern(size: 300_000, seed: 3)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        let first = try await run.get(["/film"])
        #expect(first.status == 0, "\(first.everything)")
        let path = try #require(first.results.last?.path)
        switch change {
        case "truncated": truncate(path, 100_000)
        case "grown": truncate(path, 300_001)
        case "emptied": truncate(path, 0)
        default: unlink(path)
        }
        let second = try await run.get(["/film"])
        #expect(second.status == 0, "\(second.everything)")
        let isIdentical = try run.published(by: second) == content.allBytes
        #expect(isIdentical, "a file reported as finished is wrong")
        #expect(run.server.requests.count == 2)
      }
    }

    @Test func anUnchangedFinishedFileIsNotFetchedAgain() async throws {
      try await DefectRun.with {
        .file(Self.old, etag: "\"v1\"", for: $0)
      } _: { run in
        for _ in 0..<2 {
          let outcome = try await run.get(["/film"])
          #expect(outcome.status == 0, "\(outcome.everything)")
        }
        #expect(run.server.requests.count == 1)
      }
    }

    // MARK: One ledger for two folders

    @Test func eachFolderGetsItsFile() async throws {
      let content = ScriptedContent.pattern(size: 300_000, seed: 4)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        for directory in ["a", "b"] {
          let outcome = try await run.get(["/film"], into: directory, ["--ledger", run.folder.path("ledger")])
          #expect(outcome.status == 0, "\(outcome.everything)")
          let isThere = (try? run.folder.read("\(directory)/film")) == content.allBytes
          #expect(isThere, "\(directory)/film: \(outcome.everything)")
        }
      }
    }

    /// A file of the user has the name that the download got in the first folder.
    @Test func aFileOfTheSameNameElsewhereIsNotTheDownload() async throws {
      let content = ScriptedContent.pattern(size: 300_000, seed: 4)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        let ledger = ["--ledger", run.folder.path("ledger")]
        let first = try await run.get(["/film"], into: "a", ledger)
        #expect(first.status == 0, "\(first.everything)")
        let own = ScriptedContent.pattern(size: 300_000, seed: 6).allBytes
        _ = try run.folder.write(own, to: "b/film")
        let second = try await run.get(["/film"], into: "b", ledger)
        #expect(second.status == 0, "\(second.everything)")
        #expect(second.results.last?.path?.hasPrefix(run.folder.path("b/")) == true, "\(second.everything)")
        let isIdentical = try run.published(by: second) == content.allBytes
        #expect(isIdentical, "nothing was fetched into the second folder")
        let isSpared = (try? run.folder.read("b/film")) == own
        #expect(isSpared, "the user's own file is gone")
      }
    }

    @Test func removingKeepsFilesThatWereNotPublished() async throws {
      let content = ScriptedContent.pattern(size: 300_000, seed: 4)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        let ledger = ["--ledger", run.folder.path("ledger")]
        let outcome = try await run.get(["/film"], into: "a", ledger)
        #expect(outcome.status == 0, "\(outcome.everything)")
        // It has the same name and size as the file that was published elsewhere.
        let own = ScriptedContent.pattern(size: 300_000, seed: 6).allBytes
        _ = try run.folder.write(own, to: "b/film")
        _ = try await run.tool(["remove", "--all", "--files", "-d", run.folder.path("b")] + ledger)
        let isSpared = (try? run.folder.read("b/film")) == own
        #expect(isSpared, "the user's own file is gone")
      }
    }

    @Test func removingKeepsFilesOfTheUser() async throws {
      let content = ScriptedContent.pattern(size: 300_000, seed: 4)
      try await DefectRun.with {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(["/film"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let own = Array("my own notes".utf8)
        unlink(run.folder.path("out/film"))
        _ = try run.folder.write(own, to: "out/film")
        _ = try await run.tool(["remove", "--all", "--files", "-d", run.folder.path("out")])
        #expect((try? run.folder.read("out/film")) == own, "the user's own file is gone")
      }
    }

    @Test func removingDeletesPublishedFiles() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(["/film"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let removed = try await run.tool(["remove", "--all", "--files", "-d", run.folder.path("out")])
        #expect(removed.status == 0, "\(removed.everything)")
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/film")))
      }
    }
  }
}
