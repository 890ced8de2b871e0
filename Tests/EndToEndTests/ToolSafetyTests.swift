import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// What the tool must not print, delete or overwrite.
  @Suite struct ToolSafetyTests {
    // MARK: Secrets

    @Test func passwordsAreNotShown() async throws {
      let server = try await ScriptedHTTPServer.start { _ in .status(404) }
      let folder = try TemporaryFolder()
      let plain = "\(server.url("/film?page=2&X-Amz-Signature=s3cr3tsignature"))"
      let url = plain.replacing("http://", with: "http://alice:hunter2@")
      var everything = ""
      for arguments in [
        ["get", url, "--json"], ["get", url], ["get", url + "&x=1", "-q"], ["list", "--json"], ["list"],
        ["resume", "--json"], ["get", "alice:hunter2@example.org/x", "--json"],
        ["get", "gopher://alice:hunter2@h/x"],
      ] {
        let outcome = try await Command.downpipe(arguments + ["-d", folder.path("out")]).run()
        #expect(!outcome.output.contains("hunter2"), "\(arguments): \(outcome.everything)")
        #expect(!outcome.errors.contains("hunter2"), "\(arguments): \(outcome.everything)")
        #expect(!outcome.output.contains("page=2"), "\(arguments): \(outcome.everything)")
        #expect(!outcome.errors.contains("page=2"), "\(arguments): \(outcome.everything)")
        everything += outcome.output + outcome.errors
      }
      #expect(!everything.contains("s3cr3t"))
      #expect(everything.contains("/film?page=…&X-Amz-Signature=…"))
      await server.shutdown()
    }

    // MARK: Paths outside the folder

    @Test func filesOutsideAreRemovedOnlyWhenAllowed() async throws {
      let server = try await ScriptedHTTPServer.start { .file(.bytes([1, 2, 3]), etag: "\"v1\"", for: $0) }
      let folder = try TemporaryFolder()
      let get = try await Command.downpipe([
        "get", "\(server.url("/film"))", "-d", folder.path("out"), "--move-into", folder.path("else"),
      ]).run()
      #expect(get.status == 0, "\(get.everything)")
      let film = folder.path("else/film")
      #expect(FileManager.default.fileExists(atPath: film))

      let remove = ["remove", "--all", "--files", "-d", folder.path("out")]
      let refused = try await Command.downpipe(remove).run()
      #expect(refused.status == 2, "\(refused.everything)")
      #expect(refused.errors.contains("--allow-outside") && refused.errors.contains(film), "\(refused.everything)")
      #expect(FileManager.default.fileExists(atPath: film))
      let list = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run()
      #expect(list.toolLines.count == 1, "nothing is removed from the ledger either: \(list.everything)")

      let allowed = try await Command.downpipe(remove + ["--allow-outside"]).run()
      #expect(allowed.status == 0, "\(allowed.everything)")
      #expect(!FileManager.default.fileExists(atPath: film))
      await server.shutdown()
    }

    /// The path of the file is below the folder, and a link leads elsewhere.
    @Test func linksDoNotLeadOutside() async throws {
      let server = try await ScriptedHTTPServer.start { .file(.bytes([1, 2, 3]), etag: "\"v1\"", for: $0) }
      let folder = try TemporaryFolder()
      let get = try await Command.downpipe([
        "get", "\(server.url("/film"))", "-d", folder.path("out"), "--move-into", folder.path("out/films"),
      ]).run()
      #expect(get.status == 0, "\(get.everything)")
      try FileManager.default.moveItem(atPath: folder.path("out/films"), toPath: folder.path("else"))
      try FileManager.default.createSymbolicLink(
        atPath: folder.path("out/films"), withDestinationPath: folder.path("else"))
      let refused = try await Command.downpipe(["remove", "--all", "--files", "-d", folder.path("out")]).run()
      #expect(refused.status == 2, "\(refused.everything)")
      #expect(FileManager.default.fileExists(atPath: folder.path("else/film")))
      await server.shutdown()
    }

    @Test func resumeWritesOutsideOnlyWhenAllowed() async throws {
      let held = ServerGate()
      let content = ScriptedContent.pattern(size: 1 << 20)
      let server = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
        return request.number == 1 ? reply.held(at: held, after: 500_000) : reply
      }
      let folder = try TemporaryFolder()
      let get = try await Command.downpipe([
        "get", "\(server.url("/film"))", "-d", folder.path("out"), "--move-into", folder.path("else"), "--json",
      ]).run { line, process in
        if let line = ToolLine(line), line.bytes == 500_000 { kill(process, SIGTERM) }
      }
      #expect(get.status == 130, "\(get.everything)")
      held.open()

      let resume = ["resume", "-d", folder.path("out"), "--json"]
      let refused = try await Command.downpipe(resume).run()
      #expect(refused.status == 1, "\(refused.everything)")
      #expect(refused.results.last?.error?.code == "unsafePath", "\(refused.everything)")
      #expect(refused.results.last?.error?.message.contains("--allow-outside") == true, "\(refused.everything)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("else")).isEmpty)

      let allowed = try await Command.downpipe(resume + ["--allow-outside"]).run()
      #expect(allowed.status == 0, "\(allowed.everything)")
      let isIdentical = try folder.read("else/film") == content.allBytes
      #expect(isIdentical)
      #expect(server.requests.count == 2, "the refused file's bytes are kept")
      await server.shutdown()
    }

    // MARK: Replacing

    enum Occupant: CaseIterable { case folder, pipe, link }

    private func make(_ occupant: Occupant, at path: String) throws {
      switch occupant {
      case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      case .pipe: #expect(mkfifo(path, 0o600) == 0)
      case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/null")
      }
    }

    @Test(arguments: Occupant.allCases)
    func onlyRegularFilesAreReplaced(_ occupant: Occupant) async throws {
      let server = try await ScriptedHTTPServer.start { .file(.bytes([1, 2, 3]), etag: "\"v1\"", for: $0) }
      let folder = try TemporaryFolder()
      _ = try folder.write([], to: "out/other")
      try make(occupant, at: folder.path("out/film"))
      func kind() throws -> FileAttributeType? {
        try FileManager.default.attributesOfItem(atPath: folder.path("out/film"))[.type] as? FileAttributeType
      }
      let before = try kind()

      let get = ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--on-conflict", "replace", "--json"]
      let named = try await Command.downpipe(get + ["-o", "film"]).run()
      #expect(named.status == 2, "\(named.everything)")
      #expect(named.errors.contains("“film” is "), "\(named.everything)")
      #expect(server.requests.isEmpty)

      let found = try await Command.downpipe(get).run()
      #expect(found.status == 1, "\(found.everything)")
      #expect(found.results.last?.error?.code == "alreadyExists", "\(found.everything)")
      #expect(try kind() == before)
      let list = try await Command.downpipe(["list", "-d", folder.path("out"), "--json"]).run()
      #expect(list.toolLines.map(\.bytes) == [3], "its bytes are kept: \(list.everything)")
      await server.shutdown()
    }
  }
}
