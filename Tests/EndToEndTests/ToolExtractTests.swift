#if Archive
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
    /// `--extract`, `--keep-time` and `--name`.
    @Suite struct ToolExtractTests {
      /// The bytes of an archive with `tool-1.2/bin/run` and a large file.
      private func archive(_ type: String, in folder: TemporaryFolder) async throws -> [UInt8] {
        _ = try folder.write(Array("#!/bin/sh\n".utf8), to: "source/tool-1.2/bin/run")
        _ = try folder.write(DownloadFixtures.pattern(size: 400_000), to: "source/tool-1.2/data")
        let name = folder.path("tool.\(type)")
        let arguments = type == "zip" ? ["-q", "-r", name, "tool-1.2"] : ["-caf", name, "tool-1.2"]
        let outcome = try await Command(
          "bash", ["-c", "cd \"$0\" && exec \"$@\"", folder.path("source"), type == "zip" ? "zip" : "tar"] + arguments
        ).run()
        try #require(outcome.status == 0, "\(outcome.everything)")
        return try folder.read("tool.\(type)")
      }

      @Test(arguments: ["tar", "tar.gz", "zip"])
      func archivesAreUnpacked(_ type: String) async throws {
        let made = try TemporaryFolder()
        let bytes = try await archive(type, in: made)
        try await DefectRun.with {
          .file(.bytes(bytes), etag: "\"v1\"", for: $0)
        } _: { run in
          let outcome = try await run.get(["/tool.\(type)"], ["--extract"])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(outcome.results.last?.path == run.folder.path("out/tool"))
          #expect(try run.folder.read("out/tool/tool-1.2/data") == DownloadFixtures.pattern(size: 400_000))
          let stripped = try await run.get(
            ["/tool.\(type)"], into: "other",
            ["--extract", "--strip-components", "1", "--move-into", run.folder.path("b")])
          #expect(stripped.status == 0, "\(stripped.everything)")
          #expect(try run.folder.read("b/tool/bin/run") == Array("#!/bin/sh\n".utf8))
          #expect(!FileManager.default.fileExists(atPath: run.folder.path("other/tool.\(type)")))
          let again = try await run.get(["/tool.\(type)"], ["--extract"])
          #expect(again.status == 0 && run.server.requests.count == 2, "\(again.everything)")
          let dry = try await run.get(["/tool.\(type)"], into: "third", ["--extract", "--dry-run"])
          #expect(dry.toolLines.last?.path == run.folder.path("third/tool"), "\(dry.everything)")
        }
      }

      @Test func aFileThatIsNoArchiveIsAnError() async throws {
        try await DefectRun.with {
          .file(.text("<html>no such page</html>"), etag: "\"v1\"", for: $0)
        } _: { run in
          let outcome = try await run.get(["/tool.zip"], ["--extract"])
          #expect(outcome.status == 1, "\(outcome.everything)")
          #expect(outcome.results.last?.error?.message.contains("not an archive") == true, "\(outcome.everything)")
          #expect(try run.folder.contents().allSatisfy { !$0.hasPrefix("out/tool") })
        }
      }

      @Test("the steps are those of the killed command", arguments: ["get", "resume"])
      func killed(_ command: String) async throws {
        let (made, held) = (try TemporaryFolder(), ServerGate())
        let bytes = try await archive("tar", in: made)
        try await DefectRun.with { request in
          let reply = ScriptedReply.file(.bytes(bytes), etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.held(at: held, after: 200_000) : reply
        } _: { run in
          let options = ["--extract", "--strip-components", "1"]
          let killed = try await run.get(["/tool.tar"], options) { line, process in
            if ToolLine(line)?.bytes == 200_000 { kill(process, SIGKILL) }
          }
          #expect(killed.status != 0)
          held.open()
          let outcome =
            try await command == "get"
            ? run.get(["/tool.tar"], options) : run.tool(["resume", "-d", run.folder.path("out"), "--json"])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("out/tool/data") == DownloadFixtures.pattern(size: 400_000))
          #expect(try run.unfinished() == [])
          #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/tool.tar")))
        }
      }

      @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx"), "there is no nginx"))
      func timesAndNamesOfARealServer() async throws {
        let nginx = try await NginxServer()
        let date = Date(timeIntervalSince1970: 1_234_567_890)
        try nginx.add("film.mkv", [1, 2, 3])
        let file = nginx.folder.path("files/film.mkv")
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file)
        let folder = try TemporaryFolder()
        let options = ["--keep-time", "--name", "{year}/{month}/{stem}-{day}.{extension}"]
        let get = ["get", nginx.url("/files/film.mkv"), "-d", folder.path("out"), "--json"] + options
        let outcome = try await Command.downpipe(get).run()
        let path = folder.path("out/2009/02/film-13.mkv")
        #expect(outcome.status == 0 && outcome.results.last?.path == path, "\(outcome.everything)")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.modificationDate] as? Date == date)
        let again = try await Command.downpipe(get).run()
        #expect(again.status == 0 && again.results.last?.path == path, "\(again.everything)")
        #expect(try nginx.requests().count == 1)
        let dry = try await Command.downpipe(get + ["--dry-run", "--ledger", "none"]).run()
        #expect(dry.toolLines.last?.path == path, "\(dry.everything)")
      }
    }
  }
#endif
