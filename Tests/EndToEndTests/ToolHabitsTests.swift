import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Habits of command lines: help, version, completions, a dry run.
  @Suite struct ToolHabitsTests {
    @Test func withoutArgumentsTheToolPrintsItsHelp() async throws {
      let outcome = try await Command.downpipe([]).run()
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.everything)")
      for word in ["USAGE", "SUBCOMMANDS", "get", "resume", "--version"] { #expect(outcome.output.contains(word)) }
    }

    @Test func theVersionHasThreeNumbers() async throws {
      let outcome = try await Command.downpipe(["--version"]).run()
      #expect(outcome.status == 0)
      #expect(try #/[0-9]+\.[0-9]+\.[0-9]+\n/#.wholeMatch(in: outcome.output) != nil, "\(outcome.everything)")
    }

    @Test func aURLAloneIsDownloaded() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.tool(["\(run.server.url("/film"))", "-d", run.folder.path("out"), "--json"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(try run.folder.read("out/film") == Array("film".utf8))
      }
    }

    @Test(arguments: ["lst", "--jbos", "-o"])
    func aTypingErrorNamesTheHelp(_ argument: String) async throws {
      let outcome = try await Command.downpipe([argument]).run()
      #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome.everything)")
      #expect(outcome.errors.contains(argument) && outcome.errors.contains("--help"), "\(outcome.everything)")
    }

    @Test(arguments: ["curl", "urlsession"])
    func userAgentAndRefererReachTheServer(_ source: String) async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await run.get(
          ["/film"], ["--source", source, "-A", "Mozilla/5.0 (X11)", "-e", "https://example.org/page"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let headers = try #require(run.server.requests.first?.headers)
        #expect(headers["User-Agent"] == "Mozilla/5.0 (X11)" && headers["Referer"] == "https://example.org/page")
      }
    }

    /// The server sends nothing: without the option, the tool waits for a minute.
    @Test(arguments: ["curl", "urlsession"])
    func anAttemptEndsAfterItsTimeout(_ source: String) async throws {
      let held = ServerGate()
      defer { held.open() }
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0).held(at: held, after: 2)
      } _: { run in
        let outcome = try await run.get(["/film"], ["--source", source, "--timeout", "0.3", "--retry", "0"])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(outcome.results.last?.error?.code == "timedOut", "\(outcome.everything)")
      }
    }

    @Test func aDryRunWritesNothing() async throws {
      let content = ScriptedContent.pattern(size: 300_000)
      try await DefectRun.with { request in
        if request.path == "/missing" { return .status(404) }
        return .file(content, etag: "\"v1\"", for: request)
      } _: { run in
        let outcome = try await run.get(["/film", "/missing"], ["--dry-run", "--move-into", run.folder.path("films")])
        #expect(outcome.status == 1, "\(outcome.everything)")
        #expect(outcome.toolLines.map(\.path) == [run.folder.path("films/film"), nil], "\(outcome.everything)")
        #expect(outcome.toolLines.map(\.error?.code) == [nil, "httpStatus"], "\(outcome.everything)")
        #expect(outcome.toolLines.first?.total == 300_000 && outcome.toolLines.first?.resumable == true)
        #expect(try run.folder.contents() == [])
        // A refusal may be about the range alone: the missing file is asked for once more without one.
        let ranges = run.server.requests.filter { $0.headers["Range"] == "bytes=0-0" }
        #expect(ranges.count == 2 && run.server.requests.count == 3)
      }
    }

    /// One download is interrupted, then finished.
    @Test func aDryRunShowsWhatTheLedgerHas() async throws {
      let held = ServerGate()
      let content = ScriptedContent.pattern(size: 300_000)
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: held, after: 100_000) : reply
      } _: { run in
        try await run.getInterrupted("/film", at: 100_000)
        held.open()
        let files = try run.folder.contents()
        let half = try await run.get(["/film"], ["--dry-run"])
        #expect(half.status == 0 && half.toolLines.map(\.bytes) == [100_000], "\(half.everything)")
        #expect(half.toolLines.first?.state == "waiting", "\(half.everything)")
        #expect(try run.folder.contents() == files)

        #expect(try await run.get(["/film"]).status == 0)
        let requests = run.server.requests.count
        let whole = try await run.get(["/film"], ["--dry-run"])
        #expect(whole.toolLines.first?.state == "finished" && whole.toolLines.first?.total == 300_000)
        #expect(whole.toolLines.first?.path == run.folder.path("out/film"), "\(whole.everything)")
        #expect(run.server.requests.count == requests, "the server of a finished file is not asked")
      }
    }

    @Test("work --until-idle ends with the status of its downloads", arguments: [200, 404])
    func untilIdle(_ status: Int) async throws {
      let gate = ServerGate()
      try await DefectRun.with { request in
        let reply = ScriptedReply.file(.pattern(size: 300_000), etag: "\"v1\"", for: request)
        if request.number == 1 { return reply.held(at: gate, after: 100_000) }
        return status == 200 ? reply : .status(status)
      } _: { run in
        try await run.getInterrupted("/film", at: 100_000)
        gate.open()
        let outcome = try await run.tool(["work", "--until-idle", "-d", run.folder.path("out"), "--json"])
        #expect(outcome.status == (status == 200 ? 0 : 1), "\(outcome.everything)")
        #expect(outcome.results.map(\.event) == [status == 200 ? "finished" : "failed"], "\(outcome.everything)")
      }
    }

    @Test func theCompletionScriptIsValid() async throws {
      let script = try await Command.downpipe(["--generate-completion-script", "bash"]).run()
      #expect(script.status == 0)
      let folder = try TemporaryFolder()
      let path = try folder.write(Array(script.output.utf8), to: "downpipe.bash")
      let test = """
        . "$1"
        COMP_WORDS=(downpipe get --on-conflict '') COMP_CWORD=3 COMP_LINE='downpipe get --on-conflict ' COMP_POINT=28
        _downpipe downpipe '' --on-conflict; echo "${COMPREPLY[@]}"
        """
      let outcome = try await Command("bash", ["-c", test, "bash", path]).run()
      #expect(outcome.output.contains("keep-both"), "\(outcome.everything)")
    }
  }
}
