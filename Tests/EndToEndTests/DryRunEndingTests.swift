import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// How a dry run ends, and what it leaves as it was.
  @Suite struct DryRunEndingTests {
    private func film(_ request: ScriptedRequest) -> ScriptedReply {
      .file(.pattern(size: 300_000), etag: "\"v1\"", for: request)
    }

    @Test func aLedgerThatCannotBeOpenedIsWrongUsage() async throws {
      try await DefectRun.with {
        film($0)
      } _: { run in
        try run.folder.write(Array("this is no database, and long enough for a header of SQLite".utf8), to: "ledger")
        let outcome = try await run.get(["/film"], ["--dry-run", "--ledger", run.folder.path("ledger")])
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome.everything)")
        #expect(outcome.errors.contains("ledger"), "\(outcome.everything)")
        #expect(run.server.requests.isEmpty)
      }
    }

    /// The reader has closed the pipe before the tool writes, as `head` does after a line.
    @Test(arguments: ["get", "list"])
    func aReaderThatIsGoneEndsTheToolInOrder(_ command: String) async throws {
      try await DefectRun.with {
        film($0)
      } _: { run in
        #expect(try await run.get(["/film"]).status == 0)
        let script = """
          import os, subprocess, sys
          reader, writer = os.pipe()
          os.close(reader)
          sys.exit(subprocess.run(sys.argv[1:], stdout=writer).returncode & 255)
          """
        let more = command == "get" ? ["--dry-run", "\(run.server.url("/other"))"] : []
        let outcome = try await Command.downpipe(
          [command, "-d", run.folder.path("out")] + more, by: ["python3", "-c", script]
        ).run()
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.everything)")
        // The ledger was closed: its log was copied into it. The file may stay, if a reading connection was closed last.
        let logs = try run.folder.contents().filter { $0.hasSuffix("-wal") }
        for log in logs { #expect(try run.folder.read(log).isEmpty, "\(log)") }
      }
    }

    @Test func aSignalEndsTheDryRunInOrder() async throws {
      let held = ServerGate()
      defer { held.open() }
      try await DefectRun.with { request in
        request.path == "/held" ? ScriptedReply([.hold(held)]) : film(request)
      } _: { run in
        let outcome = try await run.get(["/film", "/held"], ["--dry-run", "-j", "1"]) { line, process in
          if ToolLine(line)?.event == "dryRun" { kill(process, SIGINT) }
        }
        #expect(outcome.status == 130 && outcome.toolLines.count == 1, "\(outcome.everything)")
      }
    }
  }
}
