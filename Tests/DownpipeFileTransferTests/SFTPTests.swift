#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
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

  /// Host keys and log-ins of SFTP, against sshd.
  @Suite("SFTP", .endsHangs, .serialized)
  struct SFTPTests {
    private func failure(
      _ server: SSHServer, _ configure: (inout FileTransferSource.Configuration) throws -> Void = { _ in }
    ) async throws -> DownloadError? {
      var configuration = server.configuration
      try configure(&configuration)
      return try await withRunning(FileTransferSource(configuration)) { session in
        await session.failure(try server.url("file"))
      }
    }

    @Test func hostsThatAreNotKnownAreRefused() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      #expect(try await failure(server) == nil)
      try server.folder.write([], to: "known_hosts")
      let unknown = try await failure(server)
      #expect(unknown?.code == .unknownHostKey)
      #expect(unknown?.message.contains("ssh-keyscan -p \(server.server.port) 127.0.0.1") == true)
      #expect(try server.folder.read("known_hosts").isEmpty, "nothing is added")
      let absent = try await failure(server) { $0.ssh.knownHosts = .file(server.folder.path("absent")) }
      #expect(absent?.code == .unknownHostKey)
    }

    @Test func hostsWithAnotherKeyAreRefused() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      try server.know("other-host")
      let changed = try await failure(server)
      #expect(changed?.code == .changedHostKey)
      #expect(changed?.message.contains("ssh-keygen -R") == true)
      try server.know("host")
      #expect(try await failure(server) == nil)
    }

    @Test func keysLogIn() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      func fails(_ name: String, _ passphrase: String?) async throws -> DownloadError? {
        try await failure(server) { $0.ssh.privateKey = .init(path: server.folder.path(name), passphrase: passphrase) }
      }
      #expect(try await fails("locked", "a passphrase") == nil)
      for (name, passphrase) in [("locked", "wrong"), ("stranger", nil), ("absent", nil)] as [(String, String?)] {
        let error = try await fails(name, passphrase)
        #expect(error?.code == .logInRefused, "\(name): \(error?.description ?? "no error")")
        #expect(error?.message.contains("wrong") != true)
      }
      #expect(try await failure(server) { $0.ssh.privateKey = nil }?.code == .logInRefused)
    }

    @Test func aPasswordThatIsRefused() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      var configuration = server.configuration
      configuration.ssh.privateKey = nil
      try await withRunning(FileTransferSource(configuration)) { session in
        let text = server.text("file").replacing("sftp://", with: "sftp://me:hunter2@")
        let error = await session.failure(try url(text))
        #expect(error?.code == .logInRefused && error?.message.contains("hunter2") == false)
      }
    }

    @Test func theAgentLogsIn() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      // The agent becomes a daemon. A descriptor inherited from this process would stay open in it, and a wait for
      // the end of that pipe would wait without end.
      let script = """
        for f in /proc/$$/fd/*; do n=${f##*/}; [ "$n" -gt 2 ] && eval "exec $n>&-"; done
        exec ssh-agent -a "$0"
        """
      let started = try await Program("bash", ["-c", script, server.folder.path("agent")])
      let id = try #require(
        started.output.firstMatch(of: #/SSH_AGENT_PID=(\d+)/#).flatMap { Int32($0.output.1) }, "\(started.output)")
      // Threads of the executor block other signals, and so do their processes.
      defer { kill(id, SIGKILL) }
      let added = try await Program(
        "ssh-add", [server.folder.path("user")], environment: ["SSH_AUTH_SOCK": server.folder.path("agent")])
      #expect(added.status == 0, "\(added.output)")
      // The library reads the variable of this process. Other tests do not use an agent.
      setenv("SSH_AUTH_SOCK", server.folder.path("agent"), 1)
      defer { unsetenv("SSH_AUTH_SOCK") }
      #expect(
        try await failure(server) { configuration in
          configuration.ssh.usesAgent = true
          configuration.ssh.privateKey = nil
        } == nil)
    }

    @Test(
      "Servers that are silent, or speak something else",
      arguments: [
        (nil, 0, [.timedOut]), ("SSH-2.0-OpenSSH_9.2\r\n", 1, [.timedOut]),
        ("220 ready\r\n", 1, [.timedOut, .network]), ("x", 1_000_000, [.timedOut, .network]),
        ("line\r\n", 100_000, [.timedOut, .network]),
        ("SSH-2.0-x\r\n" + "\u{7F}\u{7F}\u{7F}", 30_000, [.timedOut, .network]),
      ] as [(String?, Int, [DownloadError.Code])])
    func otherProtocols(_ text: String?, _ times: Int, _ codes: [DownloadError.Code]) async throws {
      let greeting = text.map { String(repeating: $0, count: times) }
      let server = try ScriptedFTPServer(.init(greeting: greeting, isMute: true))
      defer { server.end() }
      let source = FileTransferSource {
        $0.proxy = .none
        $0.connectTimeLimit = .milliseconds(500)
      }
      try await withRunning(source) { session in
        let error = await session.failure(try url("sftp://127.0.0.1:\(server.port)/file"))
        #expect(error.map { codes.contains($0.code) } == true, "\(error?.description ?? "no error")")
      }
    }

    @Test func cancellingDuringTheHandshake() async throws {
      let server = try ScriptedFTPServer(.init(greeting: "SSH-2.0-OpenSSH_9.2\r\n", isMute: true))
      defer { server.end() }
      try await withRunning(FileTransferSource { $0.proxy = .none }) { session in
        let url = try url("sftp://127.0.0.1:\(server.port)/file")
        let task = Task { try await session.fetch(url).bytes }
        // The client's own greeting, as the first command.
        await server.until { !$0.isEmpty }
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
      }
    }

    @Test func placesThatAServerNamesGetNoLogIn() async throws {
      let server = try await SSHServer()
      try server.add("file", [1])
      try await withRunning(server.source) { session in
        let url = try server.url("file")
        let error12 = await session.failure(url, isNamedByServer: true)
        #expect(error12?.code == .unsupportedURL)
      }
      #expect(server.server.connectionCount == 0)
    }
  }
#endif
