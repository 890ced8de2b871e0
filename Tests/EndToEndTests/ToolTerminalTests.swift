import DownpipeCore
import DownpipeTesting
import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// What the tool draws on a real terminal (a pseudo-terminal).
  @Suite struct ToolTerminalTests {
    /// Runs the tool in a terminal of 60 columns; its output is what the terminal gets.
    private func tool(
      _ arguments: [String], _ environment: [String: String], shell: String = #"exec "$0" "$@""#,
      onLine: (@Sendable (String) -> Void)? = nil
    ) async throws -> Command.Outcome {
      let script = """
        import os, pty, sys
        command = "stty cols 60 rows 20; " + sys.argv[1]
        sys.exit(os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", command] + sys.argv[2:])))
        """
      return try await Command.downpipe(arguments, by: ["python3", "-c", script, shell], environment: environment)
        .run { line, _ in onLine?(line) }
    }

    @Test(arguments: [false, true])
    func barsAreDrawnInPlace(hasColor: Bool) async throws {
      let content = ScriptedContent.pattern(size: 400_000)
      // Both files end when the terminal has shown several frames of them.
      let held = ServerGate()
      let rows = Atomic(0)
      try await DefectRun.with { request in
        if request.path == "/missing" { return .status(404) }
        return .file(content, etag: "\"v1\"", for: request).held(at: held, after: 200_000)
      } _: { run in
        let urls = ["/film-with-a-name-that-is-longer-than-its-place.mkv", "/b.bin", "/missing"]
        let outcome = try await tool(
          urls.map { "\(run.server.url($0))" } + ["-d", run.folder.path("out")],
          ["TERM": "xterm", "NO_COLOR": hasColor ? "" : "1"]
        ) { line in
          if line.contains("% "), rows.add(1, ordering: .relaxed).newValue == 12 { held.open() }
        }
        #expect(outcome.status == 1, "\(outcome.everything)")
        // The cursor is hidden while bars are drawn, and visible afterwards.
        #expect(outcome.output.hasPrefix("\u{1B}[?25l") && outcome.output.hasSuffix("\u{1B}[?25h"))
        // Each frame starts with a move to the first line of the last one.
        #expect(outcome.output.matches(of: #/\x1B\[[0-9]+A/#).count > 3)
        #expect(outcome.output.contains("\u{1B}[31m") == hasColor)

        let text = outcome.output.replacing(#/\x1B\[[?0-9]*[A-Za-z]/#, with: "").replacing("\r", with: "")
        for words in ["▕", "% ", "/s", "0/3", "✓ b.bin  391 KiB", "404", "2 of 3 files finished, 1 failed: 781 KiB"] {
          #expect(text.contains(words), "\(words): \(text.suffix(2000))")
        }
        // Failures may be longer: why a download failed is never cut.
        let rows = text.split(separator: "\n").filter { !$0.contains("✗") && !$0.contains("files finished") }
        #expect(rows.allSatisfy { $0.count < 60 }, "\(rows.filter { $0.count >= 60 })")
      }
    }

    #if RPC
      @Test("a terminal shows the token that serve makes, and a log does not")
      func theTokenIsForATerminal() async throws {
        try await DefectRun.with { _ in
          .status(404)
        } _: { run in
          // The port is used, so that the server ends after it has made its token.
          let serve = ["serve", "--rpc-listen", "\(run.server.port)", "-d"]
          let shown = try await tool(serve + [run.folder.path("shown")], ["TERM": "xterm"])
          let logged = try await run.tool(serve + [run.folder.path("logged")])
          for (outcome, name) in [(shown, "shown"), (logged, "logged")] {
            let file = try run.folder.read("\(name)/.downpipe/rpc-secret")
            let token = String(decoding: file, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            let text = outcome.output + outcome.errors
            #expect(outcome.status == 2 && text.contains("rpc-secret"), "\(outcome.everything)")
            #expect(token.utf8.count == 32 && text.contains(token) == (name == "shown"), "\(outcome.everything)")
          }
        }
      }
    #endif

    /// Standard output leads elsewhere: it gets plain lines, and the terminal still has the bars.
    @Test func redirectedOutputGetsPlainLines() async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await tool(
          ["\(run.server.url("/film"))", "-d", run.folder.path("out")],
          ["TERM": "xterm", "OUT": run.folder.path("lines")], shell: #"exec "$0" "$@" > "$OUT""#)
        #expect(outcome.status == 0 && outcome.output.contains("\u{1B}[?25l"), "\(outcome.everything)")
        let lines = String(decoding: try run.folder.read("lines"), as: UTF8.self)
        #expect(lines == "finished\t\(run.folder.path("out/film"))\t4\n")
      }
    }

    @Test(arguments: [["TERM": "dumb"], ["TERM": "xterm", "LC_ALL": "de_DE.ISO-8859-1"]])
    func aTerminalThatCannotShowBarsGetsPlainLines(_ environment: [String: String]) async throws {
      try await DefectRun.with {
        .file(.text("film"), etag: "\"v1\"", for: $0)
      } _: { run in
        let outcome = try await tool(
          ["\(run.server.url("/film"))", "-d", run.folder.path("out")], environment)
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.output == "finished\t\(run.folder.path("out/film"))\t4\r\n")
      }
    }
  }
}
