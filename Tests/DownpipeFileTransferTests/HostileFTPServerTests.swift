#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Servers that deviate from RFC 959, break off, or lie.
  @Suite("Hostile FTP servers", .endsHangs)
  struct HostileFTPServerTests {
    typealias Script = ScriptedFTPServer.Script

    private static let content = DownloadFixtures.pattern(size: 300_000)

    private func with<R>(
      _ configure: (inout Script) -> Void, limit: Duration? = nil,
      _ body: (any SourceSession, ScriptedFTPServer) async throws -> R
    ) async throws -> R {
      var script = Script()
      script.content = Self.content
      configure(&script)
      let server = try ScriptedFTPServer(script)
      defer { server.end() }
      let source = FileTransferSource { configuration in
        configuration.proxy = .none
        configuration.encryption = .none
        if let limit {
          configuration.connectTimeLimit = limit
          configuration.idleTimeLimit = limit
        }
      }
      return try await withRunning(source) { try await body($0, server) }
    }

    /// The error of fetching a file from a server with this script.
    private func failure(limit: Duration? = nil, _ configure: (inout Script) -> Void) async throws -> DownloadError? {
      try await with(configure, limit: limit) { session, server in await session.failure(try server.url()) }
    }

    @Test func aServerThatKeepsTheRules() async throws {
      try await with { _ in
      } _: { session, server in
        let fetched = try await session.fetch(try server.url())
        #expect(fetched.bytes == Self.content && fetched.reply.length == .known(300_000))
        #expect(fetched.reply.validator?.lastModified == Date(timeIntervalSince1970: 1_577_934_245))
        #expect(server.commands.contains("TYPE I") && server.commands.contains("USER anonymous"))
      }
    }

    @Test(
      "Replies before a body",
      arguments: [
        "125 transfer starting\r\n", "150 Opening BINARY mode data connection for x (300000 bytes).\r\n",
        "150-two\r\n150 lines\r\n", "150 (1 bytes)\r\n",
      ])
    func openings(_ opening: String) async throws {
      try await with {
        $0.opening = opening
      } _: { session, server in
        let bytes = try await session.fetch(try server.url()).bytes
        #expect(bytes == Self.content)
      }
    }

    // MARK: Before the file

    @Test func aServerWithoutAGreeting() async throws {
      #expect(try await failure(limit: .milliseconds(300)) { $0.greeting = nil }?.code == .timedOut)
    }

    @Test(
      "Greetings of other protocols and of busy servers",
      arguments: [
        ("500 no\r\n", DownloadError.Code.invalidResponse), ("421 too many connections\r\n", .network),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", .timedOut), ("SSH-2.0-OpenSSH_9.2\r\n", .timedOut),
        ("\0\0\0\0", .timedOut),
      ])
    func greetings(_ greeting: String, _ code: DownloadError.Code) async throws {
      // A reply comes in its own time.
      let limit: Duration? = code == .timedOut ? .milliseconds(500) : nil
      #expect(try await failure(limit: limit) { $0.greeting = greeting }?.code == code)
    }

    @Test func bannersWithoutEnd() async throws {
      let banner = String(repeating: "220-" + String(repeating: "x", count: 96) + "\r\n", count: 2000)
      #expect(try await failure { $0.greeting = banner }?.code == .invalidResponse)
      #expect(
        try await failure { $0.replies["PASS"] = banner.replacing("220-", with: "230-") }?.code == .invalidResponse)
      // Before the head has come, memory is bounded, and so is the time.
      let line = "220 " + String(repeating: "x", count: 4_000_000)
      let error = try await failure(limit: .milliseconds(500)) { $0.greeting = line }
      #expect([.timedOut, .invalidResponse, .network].contains(error?.code), "\(error?.description ?? "no error")")
    }

    @Test(
      "Replies that end a transfer",
      arguments: [
        ("PASS", "530 no hunter2\r\n", DownloadError.Code.logInRefused), ("USER", "530 no\r\n", .logInRefused),
        ("PASS", "421 busy\r\n", .network), ("CWD", "550 no\r\n", .fileNotFound), ("SIZE", "550 no\r\n", .fileNotFound),
        ("RETR", "550 no\r\n", .fileNotFound), ("RETR", "450 busy\r\n", .network), ("RETR", "425 no\r\n", .network),
        ("RETR", "426 no\r\n", .network), ("RETR", "421 closing\r\n", .network), ("RETR", "451 local\r\n", .network),
        ("RETR", "553 no\r\n", .accessDenied), ("TYPE", "500 no\r\n", .invalidResponse),
        ("CWD", "421 closing\r\n", .network),
      ])
    func replies(_ command: String, _ reply: String, _ code: DownloadError.Code) async throws {
      try await with {
        $0.replies[command] = reply
      } _: { session, server in
        let error = await session.failure(try server.url("folder/file"))
        #expect(error?.code == code, "\(error?.description ?? "no error")")
        #expect(error?.message.contains("hunter2") != true)
      }
    }

    @Test("Silence after a command", arguments: ["USER", "PASS", "CWD", "MDTM", "EPSV", "TYPE", "SIZE", "RETR"])
    func silence(_ command: String) async throws {
      try await with(
        { $0.replies[command] = .some(nil) }, limit: .milliseconds(400)
      ) { session, server in
        let error13 = await session.failure(try server.url("folder/file"))
        #expect(error13?.code == .timedOut)
      }
    }

    /// The data connection goes to the host of the control connection.
    @Test func thePassiveAddressOfAnotherHostIsNotFollowed() async throws {
      try await with {
        $0.replies["EPSV"] = "500 unknown\r\n"
        $0.passiveHost = "192,0,2,1"
      } _: { session, server in
        let bytes16 = try await session.fetch(try server.url()).bytes
        #expect(bytes16 == Self.content)
        #expect(server.commands.contains("PASV"))
      }
    }

    // MARK: Size and range

    @Test func moreBytesThanTheSizeSays() async throws {
      for size: Int64 in [1, 100_000, 299_999] {
        #expect(try await failure { $0.size = size }?.code == .sizeChanged, "\(size)")
      }
    }

    @Test func fewerBytesThanTheSizeSays() async throws {
      #expect(try await failure { $0.size = 300_001 }?.code == .lengthMismatch)
      let broken = try await failure {
        $0.pausesAfter = 100_000
        $0.breaksAtPause = true
      }
      #expect([.network, .lengthMismatch].contains(broken?.code))
    }

    @Test(
      "Servers without sizes serve whole files",
      arguments: ["500 unknown\r\n", "213 \r\n", "213 many\r\n", "213 99999999999999999999\r\n"])
    func withoutSize(_ reply: String) async throws {
      try await with {
        $0.replies["SIZE"] = reply
      } _: { session, server in
        let whole = try await session.fetch(try server.url())
        #expect(whole.bytes == Self.content && whole.reply.length == .unknown)
        let part = try await session.fetch(try server.url(), range: RequestedRange(from: 1000))
        #expect(part.bytes == Self.content && part.reply.coverage == .whole && part.reply.acceptsRanges == false)
      }
    }

    @Test("The time is not taken for the size", arguments: ["19691231235959", "191240102030405", "20200102030405"])
    func timesWithoutSizes(_ time: String) async throws {
      try await with {
        $0.replies["MDTM"] = "213 \(time)\r\n"
        $0.replies["SIZE"] = "500 unknown\r\n"
      } _: { session, server in
        let whole = try await session.fetch(try server.url())
        #expect(whole.bytes == Self.content && whole.reply.length == .unknown)
      }
    }

    @Test func serversThatRefuseRangesServeWholeFiles() async throws {
      try await with {
        $0.replies["REST"] = "502 unknown\r\n"
      } _: { session, server in
        let part = try await session.fetch(try server.url(), range: RequestedRange(from: 1000, to: 2000))
        #expect(part.bytes == Self.content && part.reply.coverage == .whole && part.reply.acceptsRanges == false)
      }
    }

    @Test("Times that are not times", arguments: ["500 unknown\r\n", "213 yesterday\r\n", "213 \r\n", "550 no\r\n"])
    func withoutTime(_ reply: String) async throws {
      try await with {
        $0.replies["MDTM"] = reply
      } _: { session, server in
        let fetched = try await session.fetch(try server.url())
        #expect(fetched.bytes == Self.content && fetched.reply.validator == nil)
        #expect(fetched.reply.length == .known(300_000), "the size is not taken for the time")
      }
    }

    // MARK: The end

    /// Firewalls forget control connections on which nothing is sent for long.
    @Test func allBytesWithoutALastReply() async throws {
      try await with {
        $0.farewell = nil
      } _: { session, server in
        let bytes17 = try await session.fetch(try server.url()).bytes
        #expect(bytes17 == Self.content)
      }
    }

    @Test func anErrorAfterAllBytes() async throws {
      #expect(try await failure { $0.farewell = "426 broken\r\n" }?.code == .network)
      #expect(try await failure { $0.farewell = "551 broken\r\n" } != nil)
    }

    @Test func aBodyThatStalls() async throws {
      let release = DispatchSemaphore(value: 0)
      defer { release.signal() }
      let error = try await failure(limit: .milliseconds(400)) {
        $0.pausesAfter = 100_000
        $0.atPause = { release.wait() }
      }
      #expect(error?.code == .timedOut)
    }

    @Test("Cancelling ends a transfer whose server is silent", arguments: ["", "USER", "SIZE", "RETR", "body", "226"])
    func cancelling(_ place: String) async throws {
      let release = DispatchSemaphore(value: 0)
      defer { release.signal() }
      let isPaused = Watched(false)
      try await with {
        switch place {
        case "": $0.greeting = nil
        case "body":
          $0.pausesAfter = 100_000
          $0.atPause = {
            isPaused.update { $0 = true }
            release.wait()
          }
        case "226": $0.farewell = nil
        default: $0.replies[place] = .some(nil)
        }
      } _: { session, server in
        let url = try server.url()
        let task = Task { try await session.fetch(url).bytes }
        switch place {
        case "": break
        case "body": await isPaused.wait { $0 }
        case "226": await server.until { $0.contains { $0.hasPrefix("RETR") } }
        default: await server.until { $0.contains { $0.hasPrefix(place) } }
        }
        task.cancel()
        let result = await task.result
        if place == "226", case .success(let bytes) = result { return #expect(bytes == Self.content) }
        #expect(throws: CancellationError.self) { try result.get() }
      }
    }

    /// libcurl waits two minutes for each reply to `QUIT`.
    @Test func aServerThatDoesNotSayFarewellHoldsUpNothing() async throws {
      let clock = ContinuousClock()
      let began = clock.now
      try await with {
        $0.replies["QUIT"] = .some(nil)
      } _: { session, server in
        for number in 0..<3 { _ = try await session.fetch(try server.url("\(number)")) }
      }
      #expect(clock.now - began < .hangLimit)
    }

    @Test func aServerThatClosesIdleConnections() async throws {
      try await with {
        $0.closesAfterBody = true
      } _: { session, server in
        for _ in 0..<3 {
          let bytes = try await session.fetch(try server.url()).bytes
          #expect(bytes == Self.content)
        }
        #expect(server.commands.count { $0.hasPrefix("USER") } == 3)
      }
    }

    /// It would be taken for the reply to the next command.
    @Test func aReplyTooMany() async throws {
      try await with {
        $0.farewell = "226 done\r\n550 no such file\r\n"
      } _: { session, server in
        for _ in 0..<4 {
          // libcurl may have read it already: the next transfer fails then, and the one after it has a new connection.
          do {
            let bytes = try await session.fetch(try server.url()).bytes
            #expect(bytes == Self.content)
          } catch let error as DownloadError {
            #expect(error.code == .invalidResponse, "an error that is retried, and not a missing file: \(error)")
          }
        }
      }
    }

    /// libcurl waits for the handshake within one call: no command reaches the thread. Without the shutdown of the connection
    /// the time limit ends the wait, and not the cancellation.
    @Test("Cancelling and stopping end the TLS handshake of a control connection", arguments: [true, false])
    func silentControlHandshake(_ cancels: Bool) async throws {
      var script = Script()
      script.replies["AUTH"] = "234 go on\r\n"
      script.mutesAfter = "AUTH"
      let server = try ScriptedFTPServer(script)
      defer { server.end() }
      let source = FileTransferSource {
        $0.proxy = .none
        $0.encryption = .required
        $0.connectTimeLimit = .seconds(3600)
      }
      try await withRunning(source) { session in
        let url = try server.url()
        let task = Task { try await session.fetch(url).bytes }
        // The client's hello.
        await server.until { $0.contains("…") }
        if cancels { task.cancel() } else { await session.stop() }
        switch await task.result {
        case .success: Issue.record("there is no file")
        case .failure(let error):
          #expect(cancels ? error is CancellationError : (error as? DownloadError)?.code == .shutDown, "\(error)")
        }
      }
    }

    // MARK: Conditions

    private static let date = Date(timeIntervalSince1970: 1_577_934_245)
    /// The validator of a file that had not changed for long when its bytes came.
    private static let settled = Validator(lastModified: date, responseDate: date.addingTimeInterval(60))

    private func ask(_ condition: Validator, size: Int64?, _ server: ScriptedFTPServer) throws -> SourceRequest {
      SourceRequest(url: try server.url(), condition: condition, conditionSize: size)
    }

    @Test func anUnchangedFileIsNotSent() async throws {
      try await with {
        _ in
      } _: { session, server in
        for _ in 0..<2 {
          let reply = try await session.open(try ask(Self.settled, size: Int64(Self.content.count), server))
          #expect(reply.coverage == .none(.notModified) && reply.validator?.lastModified == Self.date)
          #expect(try await reply.bytes().isEmpty)
        }
        #expect(!server.commands.contains { $0.hasPrefix("RETR") || $0.hasPrefix("EPSV") || $0.hasPrefix("PASV") })
        #expect(try await session.fetch(try server.url()).bytes == Self.content)
        #expect(server.commands.count { $0.hasPrefix("USER") } == 1, "the connection stays")
      }
    }

    @Test(
      "Conditions that prove nothing deliver the whole file",
      arguments: [
        (Validator(lastModified: date + 1, responseDate: date + 90), 0), (Validator(lastModified: date), 0),
        (Validator(lastModified: date, responseDate: date + 59), 0), (settled, 1), (settled, nil),
        (Validator(entityTag: EntityTag("x"), lastModified: date, responseDate: date + 90), 0),
      ] as [(Validator, Int64?)])
    func conditionsThatDoNotHold(_ condition: Validator, _ excess: Int64?) async throws {
      try await with {
        _ in
      } _: { session, server in
        let size = excess.map { Int64(Self.content.count) + $0 }
        let reply = try await session.open(try ask(condition, size: size, server))
        #expect(reply.coverage == .whole)
        #expect(try await reply.bytes() == Self.content)
      }
    }

    /// With a size that equals the digits of the time, too.
    @Test("Servers that do not tell", arguments: [("SIZE", false), ("SIZE", true), ("MDTM", false)])
    func conditionsWithoutFacts(_ command: String, _ isTime: Bool) async throws {
      try await with {
        $0.replies[command] = "500 unknown\r\n"
      } _: { session, server in
        let size = isTime ? 20_200_102_030_405 : Int64(Self.content.count)
        let reply = try await session.open(try ask(Self.settled, size: size, server))
        #expect(reply.coverage == .whole)
        #expect(try await reply.bytes() == Self.content)
      }
    }

    @Test func otherSchemesOfThisLibrary() async throws {
      try await withRunning(FileTransferSource()) { session in
        let error14 = await session.failure(try url("scp://h/a"))
        #expect(error14?.code == .unsupportedURL)
        let error15 = await session.failure(try url("http://h/a"))
        #expect(error15?.code == .unsupportedURL)
      }
    }
  }
#endif
