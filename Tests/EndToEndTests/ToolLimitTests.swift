import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// What the system does not give the tool ends it with a message, not with silence, a crash or a file elsewhere.
  @Suite(.serialized) struct ToolLimitTests {
    private static let content = ScriptedContent.pattern(size: 200_000, seed: 5)

    private func with<R>(_ body: (DefectRun) async throws -> R) async throws -> R {
      try await DefectRun.with { request in
        request.path == "/missing" ? .status(404) : .file(Self.content, etag: "\"v1\"", for: request)
      } _: {
        try await body($0)
      }
    }

    @Test("Too little memory is an error of usage", arguments: [200_000, 300_000])
    func memory(_ kibibytes: Int) async throws {
      try await with { run in
        let outcome = try await run.get(["/a"], shell: "ulimit -c 0; ulimit -v \(kibibytes)")
        #expect(outcome.status == 2 && outcome.errors.contains("ulimit -v"), "\(outcome.everything)")
        #expect(run.server.requests.isEmpty)
      }
    }

    @Test("With the memory that the message asks for, many downloads work")
    func enoughMemory() async throws {
      try await with { run in
        let outcome = try await run.get(
          (0..<30).map { "/\($0)" }, ["-j", "20"], shell: "ulimit -c 0; ulimit -v 700000")
        #expect(outcome.status == 0 || outcome.errors.contains("ulimit -v"), "\(outcome.everything)")
      }
    }

    @Test(
      "Too few threads are an error of usage",
      .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    func threads() async throws {
      try await with { run in
        // The limit does not hold for root.
        let outcome = try await Command.downpipe(
          ["get", "\(run.server.url("/a"))", "-d", run.folder.path("out")],
          by: [
            "setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "bash", "-c",
            "ulimit -u 8; exec \"$0\" \"$@\"",
          ]
        ).run()
        #expect(outcome.status == 2 && outcome.errors.contains("ulimit -u"), "\(outcome.everything)")
      }
    }

    @Test("A deleted current folder is an error, and full paths do without it")
    func deletedFolder() async throws {
      try await with { run in
        let gone = "mkdir -p '\(run.folder.path("gone"))'; cd '\(run.folder.path("gone"))'; rmdir ../gone"
        let name = "downpipe-\(ProcessInfo.processInfo.processIdentifier).bin"
        let outcome = try await run.tool(["get", "\(run.server.url("/\(name)"))"], shell: gone)
        #expect(outcome.status == 2 && outcome.errors.contains("current folder"), "\(outcome.everything)")
        #expect(!FileManager.default.fileExists(atPath: "/\(name)") && run.server.requests.isEmpty)
        for command in ["list", "resume"] {
          let outcome = try await run.tool([command], shell: gone)
          #expect(outcome.status == 2 && outcome.errors.contains("current folder"), "\(outcome.everything)")
        }
        let there = try await run.get(["/a"], shell: gone)
        let isThere = try run.published(by: there) == Self.content.allBytes
        #expect(there.status == 0 && isThere)
      }
    }

    // MARK: Without a ledger

    @Test("--ledger none leaves the files and nothing else")
    func noLedger() async throws {
      try await with { run in
        let outcome = try await run.get(["/a", "/missing"], ["--ledger", "none"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(try run.folder.contents() == ["out", "out/a"])
      }
    }

    @Test("--ledger none leaves nothing after an interruption, and no other command's files are touched")
    func noLedgerInterrupted() async throws {
      let gate = ServerGate()
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
        return request.path == "/slow" ? reply.held(at: gate, after: 100_000) : reply
      } _: { run in
        let kept = try await run.get(["/kept"])
        #expect(kept.status == 0)
        let before = try run.folder.contents()
        let outcome = try await run.get(["/slow"], ["--ledger", "none"]) { line, process in
          if ToolLine(line)?.event == "progress" || line.contains("transferring") { kill(process, SIGINT) }
        }
        gate.open()
        #expect(outcome.status == 130, "\(outcome.everything)")
        #expect(
          try run.folder.contents().filter { !$0.hasSuffix("/partials") }
            == before.filter { !$0.hasSuffix("/partials") })
      }
    }

    @Test("--ledger none leaves the partial of a ledger alone")
    func noLedgerBesidePartial() async throws {
      let content = ScriptedContent.pattern(size: 8 << 20, seed: 9)
      let (gate, isGone) = (ServerGate(), Watched(false))
      defer { gate.open() }
      try await DefectRun.with { request in
        if isGone.value { return .status(404) }
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: gate, after: Checkpoints.passed) : reply
      } _: { run in
        try await run.getInterrupted("/a", at: Checkpoints.passed)
        gate.open()
        let before = try run.folder.contents()
        #expect(before.contains { $0.hasSuffix(".part") }, "\(before)")
        isGone.update { $0 = true }
        let outcome = try await run.get(["/a"], ["--ledger", "none", "--retry", "0"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(try run.folder.contents() == before)
        isGone.update { $0 = false }
        let resumed = try await run.tool(["resume", "-d", run.folder.path("out"), "--json"])
        let isRight = try run.published(by: resumed) == content.allBytes
        #expect(resumed.status == 0 && isRight, "\(resumed.everything)")
        #expect(run.server.requests.last?.headers["Range"] != nil)
      }
    }

    // MARK: Again

    @Test("restart and retry take no download that another program has added", arguments: ["restart", "retry"])
    func foreign(_ command: String) async throws {
      try await DefectRun.with {
        .file(Self.content, etag: "\"v1\"", for: $0)
      } _: { run in
        let first = try await run.get(["/a"])
        #expect(first.status == 0, "\(first.everything)")
        let ledger = run.folder.path("out/.downpipe/ledger.sqlite")
        let downloader = try await Downloader {
          FakeSource(everyURL: .status(404))
          FileStore(run.folder.path("out"))
          Retry(.never)
          SQLiteLedger(ledger)
        }
        _ = try await downloader.add(try DownloadRequest("\(run.server.url("/b"))", id: "mine"))
        try await downloader.waitUntilIdle()
        #expect(try await downloader.status(of: "mine")?.state.phase == .failed)
        await downloader.shutdown()
        let arguments = command == "restart" ? ["restart", "mine"] : ["retry"]
        let outcome = try await run.tool(arguments + ["-d", run.folder.path("out"), "--json"])
        if command == "restart" {
          #expect(outcome.status == 2 && outcome.errors.contains("another program"), "\(outcome.everything)")
        } else {
          #expect(outcome.status == 0 && outcome.results.isEmpty, "\(outcome.everything)")
        }
        #expect(run.server.requests.count { $0.path == "/b" } == 0)
      }
    }

    @Test("restart fetches a failed download from its first byte, and retry from the bytes on disk")
    func again() async throws {
      let isBroken = Watched(true)
      try await DefectRun.with { request in
        isBroken.value && request.path == "/bad" ? .status(404) : .file(Self.content, etag: "\"v1\"", for: request)
      } _: { run in
        let first = try await run.get(["/good", "/bad"])
        #expect(first.status == 1)
        let again = ["-d", run.folder.path("out"), "--json"]
        let failing = try await run.tool(["retry"] + again)
        #expect(failing.status == 1 && failing.results.map(\.event) == ["failed"], "\(failing.everything)")
        isBroken.update { $0 = false }
        let retried = try await run.tool(["retry"] + again)
        #expect(retried.status == 0 && retried.results.map(\.event) == ["finished"], "\(retried.everything)")
        let nothing = try await run.tool(["restart", "--failed"] + again)
        #expect(nothing.status == 0 && nothing.results.isEmpty, "\(nothing.everything)")
        let unknown = try await run.tool(["restart", "none"] + again)
        #expect(unknown.status == 2 && unknown.errors.contains("no download"), "\(unknown.everything)")
      }
    }

    @Test("restart --failed drops the received bytes")
    func restartFailed() async throws {
      let isBroken = Watched(true)
      let content = ScriptedContent.pattern(size: 6 << 20, seed: 6)
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return isBroken.value ? reply.truncated(after: 5 << 20) : reply
      } _: { run in
        let first = try await run.get(["/a"], ["--retry", "0"])
        #expect(first.status == 1, "\(first.everything)")
        isBroken.update { $0 = false }
        let count = run.server.requests.count
        let outcome = try await run.tool(["restart", "--failed", "-d", run.folder.path("out"), "--json"])
        let isRight = try run.published(by: outcome) == content.allBytes
        #expect(outcome.status == 0 && isRight, "\(outcome.everything)")
        #expect(run.server.requests.dropFirst(count).allSatisfy { $0.headers["Range"] == nil })
      }
    }
  }
}
