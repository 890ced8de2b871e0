#if Command
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// `--on-finish`.
    @Suite struct ToolProgramTests {
      /// A program that writes its arguments into a file, and ends with a status.
      private func program(_ run: DefectRun, status: Int = 0) async throws -> String {
        let script =
          "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '\(run.folder.path("calls"))'\necho s0metext\nexit \(status)\n"
        let path = try run.folder.write(Array(script.utf8), to: "program \(status)")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        return path
      }

      private func calls(_ run: DefectRun) throws -> [String] {
        String(decoding: try run.folder.read("calls"), as: UTF8.self).split(separator: "\n").map(String.init)
      }

      private func with(_ body: (DefectRun) async throws -> Void) async throws {
        try await DefectRun.with({ .file(.text("film"), etag: "\"v1\"", for: $0) }, body)
      }

      @Test func theProgramGetsTheFileInItsPlace() async throws {
        try await with { run in
          let program = try await program(run)
          let outcome = try await run.get(["/%24(touch%20x)%3Bfilm"], ["--on-finish", program])
          #expect(outcome.status == 0, "\(outcome.everything)")
          let path = try #require(outcome.results.last?.path)
          #expect(try calls(run) == [path])
          #expect(FileManager.default.fileExists(atPath: path) && path.hasPrefix(run.folder.path("out/")))
          // It has run.
          #expect(try await run.get(["/%24(touch%20x)%3Bfilm"], ["--on-finish", program]).status == 0)
          #expect(try calls(run) == [path])
          let more = ["--on-finish-arg", "--flag", "--on-finish-arg", "{}", "--on-finish-arg", "a b"]
          let second = try await run.get(
            ["/film"], into: "second", ["--on-finish", program, "--move-into", run.folder.path("moved")] + more)
          #expect(second.status == 0, "\(second.everything)")
          #expect(try calls(run).dropFirst() == ["--flag", run.folder.path("moved/film"), "a b"])
        }
      }

      @Test func aProgramThatFailsFailsTheDownload() async throws {
        try await with { run in
          let failing = try await program(run, status: 3)
          let outcome = try await run.get(["/film"], ["--on-finish", failing])
          #expect(outcome.status == 1 && outcome.results.last?.error?.code == "processing", "\(outcome.everything)")
          #expect(outcome.results.last?.error?.message.contains("s0metext") == true, "\(outcome.everything)")
          #expect(try run.folder.read("out/film") == Array("film".utf8), "the file stays")
          #expect(try await run.get(["/film"], ["--on-finish", failing]).status == 1)
          #expect(try calls(run).count == 2, "the same command runs the program again")
          #expect(run.server.requests.count == 1, "and fetches nothing")
        }
      }

      @Test("options that are changed after a failure take effect on steps that had completed")
      func changedOptions() async throws {
        try await with { run in
          let failing = try await program(run, status: 3)
          let good = try await program(run)
          let (a, b) = (run.folder.path("a"), run.folder.path("b"))
          #expect(try await run.get(["/film"], ["--on-finish", failing, "--move-into", a]).status == 1)
          #expect(try run.folder.read("a/film") == Array("film".utf8))
          let outcome = try await run.get(["/film"], ["--on-finish", good, "--move-into", b])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("b/film") == Array("film".utf8))
          #expect(try calls(run) == [a + "/film", b + "/film"])
        }
      }

      @Test func programsOfALedgerRunOnlyWhenAllowed() async throws {
        try await with { run in
          let failing = try await program(run, status: 1)
          #expect(try await run.get(["/film"], ["--on-finish", failing]).status == 1)
          #expect(try calls(run).count == 1)
          let resume = ["resume", "-d", run.folder.path("out"), "--json"]
          let refused = try await run.tool(resume)
          #expect(refused.status == 1 && refused.results.last?.error?.code == "permission", "\(refused.everything)")
          #expect(refused.results.last?.error?.message.contains("--allow-programs") == true)
          #expect(try calls(run).count == 1)
          _ = try await run.tool(resume + ["--allow-programs"])
          #expect(try calls(run).count == 2)
        }
      }

      @Test(arguments: ["no-such-program", "./no-such-file", "", "/etc/passwd"])
      func wrongPrograms(_ program: String) async throws {
        try await with { run in
          let outcome = try await run.get(["/film"], ["--on-finish", program])
          #expect(outcome.status == 2 && outcome.errors.contains("--on-finish"), "\(outcome.everything)")
          #expect(run.server.requests.isEmpty)
        }
      }
    }
  }
#endif
