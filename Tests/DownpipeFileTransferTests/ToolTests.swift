#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The `downpipe` of the same build.
  @Suite("The command, by FTP and SFTP", .endsHangs, .serialized)
  struct ToolTests {
    private func downpipe(
      _ arguments: [String], environment: [String: String] = [:], started: (Int32) -> Void = { _ in }
    ) async throws -> Program {
      let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      return try await Program(
        products.appending(path: "downpipe").path(percentEncoded: false), arguments, environment: environment,
        started: started)
    }

    @Test func getsFilesByFTP() async throws {
      let server = try await FTPServer()
      let content = DownloadFixtures.pattern(size: 1_000_000)
      try server.add("a b.bin", content)
      let folder = try TemporaryFolder()
      let outcome = try await downpipe(["get", server.text("a%20b.bin;type=i"), "-d", folder.path("out")])
      #expect(outcome.status == 0, "\(outcome.output)")
      #expect(try folder.read("out/a b.bin") == content)
    }

    @Test func aCommandThatIsKilledGoesOn() async throws {
      let content = DownloadFixtures.pattern(size: 12_000_000)
      let process = Watched<Int32?>(nil)
      let isKilled = DispatchSemaphore(value: 0)
      let server = try ScriptedFTPServer(
        .init(
          content: content, pausesAfter: 10_000_000,
          atPause: {
            if let id = process.value { kill(id, SIGKILL) }
            isKilled.wait()
          }))
      defer { server.end() }
      let folder = try TemporaryFolder()
      let arguments = ["get", server.text(), "-d", folder.path("out")]
      let killed = try await downpipe(arguments) { id in process.update { $0 = id } }
      #expect(killed.status == SIGKILL)
      server.change { $0.pausesAfter = nil }
      isKilled.signal()
      let outcome = try await downpipe(arguments)
      #expect(outcome.status == 0, "\(outcome.output)")
      let isEqual = try folder.read("out/file.bin") == content
      #expect(isEqual)
    }

    @Test func namesAndPasswordsReachTheServer() async throws {
      let server = try ScriptedFTPServer(.init(content: [1, 2, 3]))
      defer { server.end() }
      let folder = try TemporaryFolder()
      let outcome = try await downpipe(["get", server.text(), "--user", "me:hunter2", "-d", folder.path("out")])
      #expect(outcome.status == 0, "\(outcome.output)")
      #expect(server.commands.contains("USER me") && server.commands.contains("PASS hunter2"))
      #expect(!outcome.output.contains("hunter2"))
    }

    @Test("any log-in method is good for FTP, which has only passwords")
    func anyMethod() async throws {
      let server = try ScriptedFTPServer(.init(content: [1, 2, 3]))
      defer { server.end() }
      let folder = try TemporaryFolder()
      let outcome = try await downpipe(
        ["get", server.text(), "--user", "me:hunter2", "--auth", "any", "-d", folder.path("out")])
      #expect(outcome.status == 0, "\(outcome.output)")
      #expect(server.commands.contains("USER me") && server.commands.contains("PASS hunter2"))
    }

    @Test func aDryRunAsksTheServer() async throws {
      let server = try await FTPServer()
      try server.add("file", [1, 2, 3])
      let folder = try TemporaryFolder()
      let outcome = try await downpipe(["get", server.text("file"), "--dry-run", "-d", folder.path("out"), "--json"])
      #expect(outcome.status == 0 && outcome.output.contains("file\""), "\(outcome.output)")
      #expect(try folder.contents().isEmpty)
    }

    @Test func documentsAndChecksumFilesComeByFTP() async throws {
      let server = try await FTPServer()
      try server.add("film", Array("film".utf8))
      try server.add("SUMS", Array("\(String(repeating: "0", count: 64))  film\n".utf8))
      try server.add(
        "film.meta4",
        Array(
          """
          <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="film"><url>http://127.0.0.1:1/film</url></file>\
          </metalink>
          """.utf8))
      let folder = try TemporaryFolder()
      // The document is read; its only place is not there.
      let document = try await downpipe(
        ["get", "--metalink", server.text("film.meta4"), "-d", folder.path("out"), "--retry", "0"])
      #expect(document.status == 1 && document.output.contains("127.0.0.1:1/film"), "\(document.output)")
      // The digest is another one.
      let checked = try await downpipe(
        ["get", server.text("film"), "--checksum-file", server.text("SUMS"), "-d", folder.path("b"), "--json"])
      #expect(checked.status == 1 && checked.output.contains("digestMismatch"), "\(checked.output)")
    }

    @Test func strangersDoNotReachPrivateAddresses() async throws {
      let ftp = try await FTPServer()
      try ftp.add("file", [1])
      let ssh = try await SSHServer()
      try ssh.add("file", [1])
      let folder = try TemporaryFolder()
      for text in [
        ftp.text("file"), ssh.text("file"), "ftp://127.0.0.1/file", "ftps://10.0.0.1/file", "ftp://[::1]/file",
      ] {
        let outcome = try await downpipe(["get", text, "--untrusted", "-d", folder.path("out")])
        #expect(outcome.status != 0, "\(outcome.output)")
      }
      #expect(ftp.server.connectionCount == 0 && ssh.server.connectionCount == 0)
    }

    @Test func hostsOfSFTPMustBeKnown() async throws {
      let server = try await SSHServer()
      try server.add("file", [1, 2, 3])
      let folder = try TemporaryFolder()
      let outcome = try await downpipe(
        ["get", server.text("file"), "-d", folder.path("out")], environment: ["CFFIXED_USER_HOME": folder.path])
      #expect(outcome.status != 0 && outcome.output.contains("ssh-keyscan"), "\(outcome.output)")
    }
  }
#endif
