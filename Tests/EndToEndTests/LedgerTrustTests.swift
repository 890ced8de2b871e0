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
  /// Damaged records, secrets, and paths of a ledger that a command must not follow.
  @Suite(.serialized) struct LedgerTrustTests {
    private static let ledger = "out/.downpipe/ledger.sqlite"

    // MARK: Damage

    @Test(arguments: ["url = 'http://['", "url = X'00FF'", "headers = '{'", "phase = 'nonsense'"])
    func aDamagedRecordStopsNoOtherDownload(_ damage: String) async throws {
      try await DefectRun.with {
        .file(.text($0.path), etag: "\"v1\"", for: $0)
      } _: { run in
        let first = try await run.get(["/a", "/b"], ["-j", "1"])
        #expect(first.status == 0, "\(first.everything)")
        // Two downloads that end at nearly the same time are reported in any order.
        let ids = ["/a", "/b"].compactMap { path in first.results.first { $0.url?.hasSuffix(path) == true }?.id }
        try #require(ids.count == 2)
        try await run.change(ledger: Self.ledger, "UPDATE download SET \(damage) WHERE id = '\(ids[0])'")

        let list = try await run.tool(["list", "-d", run.folder.path("out"), "--json"])
        #expect(list.status == 0, "\(list.everything)")
        #expect(list.toolLines.contains { $0.id == ids[1] && $0.state == "finished" }, "\(list.everything)")
        let damaged = list.lines.filter { ToolLine($0)?.id == ids[0] }
        #expect(damaged.count == 1 && damaged[0].contains("damaged"), "\(list.everything)")

        let other = try await run.get(["/b", "/c"])
        #expect(other.status == 0, "\(other.everything)")
        #expect((try? run.folder.read("out/c")) == Array("/c".utf8))
        #expect(run.server.requests.filter { $0.path == "/b" }.count == 1)

        let removed = try await run.tool(["remove", ids[0], "-d", run.folder.path("out")])
        #expect(removed.status == 0, "\(removed.everything)")
        let after = try await run.tool(["list", "-d", run.folder.path("out"), "--json"])
        #expect(after.status == 0, "\(after.everything)")
        #expect(after.toolLines.compactMap(\.id).sorted() == other.results.compactMap(\.id).sorted())
        let again = try await run.get(["/a"])
        #expect(again.status == 0, "\(again.everything)")
      }
    }

    // MARK: Secrets

    /// Returns the names of files and folders that other users may read, write or enter.
    private static func open(below path: String) -> [String] {
      let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
      return ([""] + names).filter { name in
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0, status.st_mode & S_IFMT != S_IFLNK else { return false }
        return status.st_mode & 0o077 != 0
      }
    }

    @Test func otherUsersCannotReadLedgerOrPartial() async throws {
      let held = ServerGate()
      defer { held.open() }
      let content = ScriptedContent.pattern(size: 8 << 20)
      try await DefectRun.with { request in
        .file(content, etag: "\"v1\"", for: request).held(at: held, after: 5 << 20)
      } _: { run in
        let own = run.folder.path("out/.downpipe")
        let during = Watched<[String]>([])
        let outcome = try await run.get(["/film"], ["-H", "Authorization: Bearer topsecret"], shell: "umask 022") {
          line, process in
          guard ToolLine(line)?.bytes == 5 << 20 else { return }
          if Checkpoints.namedPartial(in: "\(own)/partials") == nil { Issue.record("there is no partial") }
          during.update { $0 += Self.open(below: own) }
          kill(process, SIGINT)
        }
        #expect(outcome.status == 130, "\(outcome.everything)")
        #expect(during.value == [], "while it ran")
        #expect(FileManager.default.fileExists(atPath: "\(own)/ledger.sqlite"))
        #expect(Self.open(below: own) == [], "afterwards")
      }
    }

    @Test func aLedgerWithAnotherNameIsPrivateToo() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(["/film"], ["--ledger", run.folder.path("ledger")], shell: "umask 022")
        #expect(outcome.status == 0, "\(outcome.everything)")
        for name in ["ledger", "ledger-wal", "ledger-shm"] {
          var status = stat()
          guard lstat(run.folder.path(name), &status) == 0 else { continue }
          #expect(status.st_mode & 0o077 == 0, "\(name)")
        }
        // Finished files are for the user to share.
        var status = stat()
        #expect(lstat(run.folder.path("out/film"), &status) == 0 && status.st_mode & 0o777 == 0o644)
      }
    }

    @Test func aPasswordInAURLIsNotShown() async throws {
      try await DefectRun.with { request in
        guard request.headers["Authorization"] != nil else { return .status(401) }
        return request.path == "/film" ? .file(.text("film"), etag: "\"v1\"", for: request) : .status(404)
      } _: { run in
        func url(_ path: String) -> String { "http://ada:hunter2@\(run.server.host):\(run.server.port)\(path)" }
        let out = ["-d", run.folder.path("out")]
        for more in [["--json"], []] {
          let outcome = try await run.tool(
            ["get", url("/film"), url("/missing"), "http://ada:hunter2@/", "--retry", "0"] + out + more)
          #expect(!outcome.everything.contains("hunter2"), "\(more): \(outcome.everything)")
          let outcomes = try await [
            run.tool(["get", url("/film"), url("/missing"), "--retry", "0"] + out + more),
            run.tool(["list"] + out + more), run.tool(["resume", "--retry", "0"] + out + (more)),
          ]
          #expect(outcomes[0].status == 1, "\(outcomes[0].everything)")
          #expect(outcomes[1].status == 0, "\(outcomes[1].everything)")
          for outcome in outcomes {
            #expect(!outcome.everything.contains("hunter2"), "\(more): \(outcome.everything)")
          }
          #expect(outcomes[1].output.contains("film"))
        }
        #expect((try? run.folder.read("out/film")) == Array("film".utf8))
      }
    }

    // MARK: Paths

    /// The folder belongs to another user, whose ledger names any path.
    @Test(.enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    func aForeignLedgerRemovesNothingElsewhere() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(["/film"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let victim = try run.folder.write(Array("film".utf8), to: "elsewhere/film")
        try await run.change(ledger: Self.ledger, "UPDATE download SET artifact_path = '\(victim)'")
        try await RootAccess.run("chown", ["-R", "65534", run.folder.path("out")])
        _ = try await run.tool(["remove", "--all", "--files", "-d", run.folder.path("out")])
        #expect(FileManager.default.fileExists(atPath: victim))
      }
    }

    @Test(.enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    func aForeignLedgerWritesNothingElsewhere() async throws {
      let held = ServerGate()
      defer { held.open() }
      let content = ScriptedContent.pattern(size: 8 << 20)
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: held, after: 5 << 20) : reply
      } _: { run in
        let elsewhere = run.folder.path("elsewhere")
        try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: true)
        try await run.getInterrupted("/film", at: 5 << 20, ["--move-into", elsewhere])
        try await RootAccess.run("chown", ["-R", "65534", run.folder.path("out")])
        _ = try await run.tool(["resume", "-d", run.folder.path("out"), "--retry", "0", "--json"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere) == [])
      }
    }

    /// The ledger names a file elsewhere as finished and to be renamed.
    @Test(arguments: ["list", "list --orphans", "resume", "remove --all", "remove --all --files"])
    func aLedgerRenamesNothingElsewhere(_ command: String) async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(["/film"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let victim = try run.folder.write(Array("film".utf8), to: "elsewhere/film")
        try await run.change(
          ledger: Self.ledger,
          """
          UPDATE download SET artifact_path = '\(victim)', artifact_modified_at = NULL,
          step_note = 'rename' || char(31) || 'other' || char(31)
          """)
        let arguments = command.split(separator: " ").map(String.init) + ["-d", run.folder.path("out")]
        let ending = try await run.tool(arguments)
        #expect(command.contains("--files") ? ending.status == 2 : ending.status == 0, "\(ending.everything)")
        let files = try FileManager.default.contentsOfDirectory(atPath: run.folder.path("elsewhere"))
        #expect(files == ["film"], "\(ending.everything)")
      }
    }
  }
}
