#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// What vsftpd and sshd serve, by each protocol.
  @Suite("Servers of Debian", .endsHangs, .serialized)
  struct RealServerTests {
    private static let content = DownloadFixtures.pattern(size: 16_000_000)
    /// Long ago, so that the time identifies the bytes.
    private static let modified = Date(timeIntervalSince1970: 1_577_934_245)

    @Test("The contract of sources", arguments: ServerKind.allCases)
    func conformance(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file.bin", Self.content)
      try await SourceConformance(
        server.source, url: try server.url("file.bin"), content: Self.content, missingURL: try server.url("missing")
      ).run()
      server.server.end()
    }

    @Test("Size, time and name", arguments: ServerKind.allCases)
    func properties(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file.bin", Self.content, modified: Self.modified)
      try server.add("new", [1, 2, 3], modified: Date())
      try server.add("empty", [])
      try await withRunning(server.source) { session in
        let whole = try await session.fetch(try server.url("file.bin"))
        #expect(whole.bytes == Self.content && whole.reply.coverage == .whole)
        #expect(whole.reply.length == .known(16_000_000) && whole.reply.suggestedName == "file.bin")
        #expect(whole.reply.validator?.lastModified == Self.modified && whole.reply.validator?.isStrong == true)
        let part = try await session.fetch(
          try server.url("file.bin"), range: RequestedRange(from: 1_000_000, to: 1_000_100))
        #expect(part.bytes == Array(Self.content[1_000_000..<1_000_100]))
        #expect(part.reply.coverage == .range(1_000_000..<1_000_100, total: .known(16_000_000)))
        let new = try await session.fetch(try server.url("new"))
        #expect(new.reply.validator?.isStrong == false, "a file of today may change again within the second")
        let empty = try await session.fetch(try server.url("empty"))
        #expect(empty.bytes.isEmpty && empty.reply.coverage == .whole && empty.reply.length == .known(0))
      }
    }

    @Test("Files that have not changed", arguments: ServerKind.allCases)
    func conditions(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file.bin", Self.content, modified: Self.modified)
      try await withRunning(server.source) { session in
        let whole = try await session.fetch(try server.url("file.bin")).reply
        var ask = SourceRequest(
          url: try server.url("file.bin"), condition: whole.validator, conditionSize: Int64(Self.content.count))
        let same = try await session.open(ask)
        #expect(same.coverage == .none(.notModified))
        same.body.discard()
        ask.conditionSize = 1
        let other = try await session.open(ask)
        #expect(other.coverage == .whole)
        other.body.discard()
        try server.add("file.bin", Self.content, modified: Self.modified.addingTimeInterval(-1))
        ask.conditionSize = Int64(Self.content.count)
        let older = try await session.open(ask)
        #expect(older.coverage == .whole, "an older file is another one")
        older.body.discard()
      }
    }

    /// The handshake of the data connection begins within the same call as the reply 150.
    @Test func aSilentDataConnectionDoesNotHoldUpTheEnd() async throws {
      let server = try await FTPServer(.explicitTLS)
      try server.add("file", Self.content)
      let proxy = try TunnelProxy(silentAfter: 1)
      var configuration = server.configuration
      configuration.proxy = .proxy(.init(.http, host: "127.0.0.1", port: proxy.port))
      configuration.connectTimeLimit = .seconds(3600)
      try await withRunning(FileTransferSource(configuration)) { session in
        let reply = try await session.open(SourceRequest(url: try server.url("file")))
        let task = Task { try await reply.bytes() }
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        await session.stop()
      }
      #expect(proxy.requests.count == 2)
    }

    @Test("Paths with characters of every kind", arguments: [ServerKind.ftp, .sftp])
    func paths(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      let names = [
        ("b c.bin", "b%20c.bin"), ("é/ü.bin", "%C3%A9/%C3%BC.bin"), ("a?b", "a%3Fb"), ("a#b", "a%23b"), ("a;b", "a;b"),
        ("100%", "100%25"), ("[x]*", "%5Bx%5D*"), ("-l", "-l"), ("a+b&c=d", "a+b&c=d"), ("“q”", "%E2%80%9Cq%E2%80%9D"),
        ("deep/er/still/x", "deep/er/still/x"), ("deep/y", "deep//y"),
      ]
      for (name, _) in names { try server.add(name, Array(name.utf8)) }
      try await withRunning(server.source) { session in
        for (name, path) in names {
          let fetched = try await session.fetch(try server.url(path))
          #expect(String(decoding: fetched.bytes, as: UTF8.self) == name, "\(path)")
          #expect(fetched.reply.suggestedName == String(name.split(separator: "/").last ?? ""), "\(path)")
        }
      }
    }

    @Test func absolutePathsOfFTPBeginWithAnEscapedSlash() async throws {
      let server = try await FTPServer()
      try server.add("deep/file", [1, 2, 3])
      let path = server.folder.path("files/deep/file")
      try await withRunning(server.source) { session in
        for text in ["%2F\(path.dropFirst())", path, "deep/file;type=i"] {
          let bytes9 = try await session.fetch(try server.url(text)).bytes
          #expect(bytes9 == [1, 2, 3], "\(text)")
        }
      }
    }

    @Test("Files that are not there", arguments: [ServerKind.ftp, .sftp])
    func missing(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("folder/file", [1])
      try await withRunning(server.source) { session in
        for path in ["missing", "missing/file", "folder/file/x"] {
          let error = await session.failure(try server.url(path))
          #expect(error?.code == .fileNotFound, "\(path): \(error?.description ?? "no error")")
        }
        let folder = await session.failure(try server.url("folder"))
        #expect(folder != nil, "a folder is not a file")
        // The connection serves what comes next.
        let bytes10 = try await session.fetch(try server.url("folder/file")).bytes
        #expect(bytes10 == [1])
      }
    }

    @Test("Connections are used again", arguments: ServerKind.allCases)
    func reuse(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      for number in 0..<5 { try server.add("\(number)", [UInt8(number)]) }
      try await withRunning(server.source) { session in
        for number in 0..<5 {
          let bytes11 = try await session.fetch(try server.url("\(number)")).bytes
          #expect(bytes11 == [UInt8(number)])
        }
      }
      // With TLS a data connection continues the session of its control connection.
      #expect(server.server.connectionCount == (kind == .ftp || kind == .sftp ? 1 : 5))
    }

    @Test("A file that does not come to its end", arguments: ServerKind.allCases)
    func killed(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file.bin", DownloadFixtures.pattern(size: 30_000_000))
      try await withRunning(server.source) { session in
        let reply = try await session.open(SourceRequest(url: try server.url("file.bin")))
        let isFirst = Watched(true)
        do {
          try await reply.body.forEachChunk { _ in
            let kills = isFirst.update { first in
              defer { first = false }
              return first
            }
            if kills { server.server.killAll() }
          }
          Issue.record("the file cannot have come to its end")
        } catch let error as DownloadError {
          #expect([.network, .lengthMismatch].contains(error.code), "\(error)")
        }
      }
    }

    @Test func anUntrustedCertificateIsRefused() async throws {
      let server = try await FTPServer(.explicitTLS)
      try server.add("file", [1])
      var configuration = server.configuration
      configuration.tls = .init()
      configuration.encryption = .ifAvailable
      try await withRunning(FileTransferSource(configuration)) { session in
        let error1 = await session.failure(try server.url("file"))
        #expect(error1?.code == .tls)
      }
      // The certificate is for the name alone.
      configuration = server.configuration
      try await withRunning(FileTransferSource(configuration)) { session in
        let other = try url("ftp://127.0.0.1:\(server.server.port)/file")
        let error2 = await session.failure(other)
        #expect(error2?.code == .tls)
      }
    }

    @Test func tlsThatIsRequiredIsNotLeftOut() async throws {
      let server = try await FTPServer(.plain)
      try server.add("file", [1])
      var configuration = server.configuration
      configuration.encryption = .required
      try await withRunning(FileTransferSource(configuration)) { session in
        let error3 = await session.failure(try server.url("file"))
        #expect(error3?.code == .tls)
      }
      #expect(try server.commands().allSatisfy { !$0.hasPrefix("USER") && !$0.hasPrefix("PASS") })
    }

    @Test("Private addresses are blocked", arguments: [ServerKind.ftp, .sftp])
    func privateAddresses(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file", [1])
      var configuration = server.source.configuration
      configuration.blocksPrivateAddresses = true
      try await withRunning(FileTransferSource(configuration)) { session in
        let error4 = await session.failure(try server.url("file"))
        #expect(error4?.code == .privateAddress)
      }
      #expect(server.server.connectionCount == 0)
      try await withRunning(FileTransferSource(.untrusted)) { session in
        let error5 = await session.failure(try server.url("file"))
        #expect(error5?.code == .unsupportedURL, "the port, or the scheme")
        let error6 = await session.failure(try url("ftp://127.0.0.1/file"))
        #expect(error6?.code == .privateAddress)
        let error7 = await session.failure(try url("sftp://127.0.0.1/file"))
        #expect(error7?.code == .unsupportedURL)
      }
    }

    @Test("Proxies make tunnels", arguments: [ServerKind.ftp, .sftp])
    func proxies(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file", Self.content)
      let proxy = try TunnelProxy()
      var configuration = server.source.configuration
      configuration.proxy = .proxy(.init(.http, host: "127.0.0.1", port: proxy.port))
      try await withRunning(FileTransferSource(configuration)) { session in
        let isEqual = try await session.fetch(try server.url("file")).bytes == Self.content
        #expect(isEqual)
      }
      let requests = proxy.requests
      #expect(requests.allSatisfy { $0.hasPrefix("CONNECT 127.0.0.1:") })
      #expect(requests.count == (kind == .ftp ? 2 : 1), "the data connection as well: \(requests)")
    }

    @Test("A file that is too large", arguments: [ServerKind.ftp, .sftp])
    func tooLarge(_ kind: ServerKind) async throws {
      let server = try await kind.start()
      try server.add("file", Self.content)
      var configuration = server.source.configuration
      configuration.maximumSize = 15_999_999
      try await withRunning(FileTransferSource(configuration)) { session in
        let error8 = await session.failure(try server.url("file"))
        #expect(error8?.code == .tooLarge)
      }
    }
  }
#endif
