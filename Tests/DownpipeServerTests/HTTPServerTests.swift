#if Postgres || RPC
  import DownpipeServer
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  /// What clients can make a server do, and hold.
  @Suite(.endsHangs)
  struct HTTPServerTests {
    /// Replies with what was asked for, echoes messages, and counts what ends.
    final class Echo: ServerHandler {
      let closed = Watched(0)
      let sockets = Watched<[ServerSocket]>([])
      let chunks = Watched(0)
      let floods = Watched(0)

      func acceptsSocket(_ request: ServerRequest) -> Bool { request.path == "/socket" }

      func reply(to request: ServerRequest) async -> ServerReply {
        switch request.path {
        case "/large":
          return ServerReply(200, type: "text/plain", [UInt8](repeating: 0x61, count: 20 << 20))
        case "/endless":
          var reply = ServerReply(200)
          let chunk = [UInt8](repeating: 0x61, count: 65_536)
          reply.body = .stream { [chunks] in
            chunks.update { $0 += 1 }
            return chunk
          }
          return reply
        default:
          return ServerReply(
            200, text: "\(request.method) \(request.path) \(request.query ?? "-") \(request.body.count)")
        }
      }

      func receive(_ message: [UInt8], from socket: ServerSocket, for request: ServerRequest) async throws {
        if message == Array("watch".utf8) { return sockets.update { $0.append(socket) } }
        if message == Array("close".utf8) { throw CancellationError() }
        if message == Array("flood".utf8) {
          floods.update { $0 += 1 }
          return try await socket.reply([UInt8](repeating: 0x61, count: 50 << 20))
        }
        try await socket.reply(message)
      }

      func closed(_ socket: ServerSocket) { closed.update { $0 += 1 } }
    }

    private let echo = Echo()

    /// Runs a server as long as the body.
    private func withServer(
      _ change: (inout ServerLimits) -> Void = { _ in }, _ body: (Int) async throws -> Void
    ) async throws {
      var limits = ServerLimits()
      change(&limits)
      let server = try await HTTPServer(.tcp(host: "127.0.0.1", port: 0), limits: limits, handler: echo)
      let port = try #require(server.port)
      let running = Task { await server.run() }
      do { try await body(port) } catch {
        running.cancel()
        throw error
      }
      // It ends although clients are connected.
      running.cancel()
      await running.value
    }

    @Test func `requests over one connection are answered in turn`() async throws {
      try await withServer { port in
        let client = try RawClient(port: port)
        await client.send(
          "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\nPOST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxyz")
        let text = await client.text(until: "POST /d - 3")
        #expect(text.contains("GET /a b=c 0"))
        await client.send("GET /e HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(String(decoding: await client.receive(), as: UTF8.self).hasSuffix("GET /e - 0"))
      }
    }

    @Test(arguments: [
      "Content-Length: 101\r\n\r\n",
      "Transfer-Encoding: chunked\r\n\r\n60\r\n" + String(repeating: "a", count: 96)
        + "\r\n60\r\n" + String(repeating: "a", count: 96) + "\r\n",
    ])
    func `a body that is too large is refused before it is read`(_ body: String) async throws {
      try await withServer {
        $0.requestBytes = 100
      } _: { port in
        let client = try RawClient(port: port)
        await client.send("POST / HTTP/1.1\r\nHost: x\r\n" + body)
        let text = String(decoding: await client.receive(), as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 413 ") && text.contains("at most 100 bytes"))
      }
    }

    @Test func `a client that expects 100 is told to go on`() async throws {
      try await withServer { port in
        let client = try RawClient(port: port)
        await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        #expect(await client.text(until: "\r\n\r\n").hasPrefix("HTTP/1.1 100 "))
        await client.send("x")
        #expect(await client.text(until: "POST / - 1").hasPrefix("HTTP/1.1 200 "))
      }
    }

    @Test func `what is not HTTP is answered with an error`() async throws {
      try await withServer { port in
        let client = try RawClient(port: port)
        await client.send("\u{1}\u{2} hello\r\n\r\n")
        #expect(String(decoding: await client.receive(), as: UTF8.self).hasPrefix("HTTP/1.1 400 "))
        let large = try RawClient(port: port)
        await large.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + String(repeating: "a", count: 1 << 20) + "\r\n\r\n")
        let text = String(decoding: await large.receive(), as: UTF8.self)
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"))
      }
    }

    @Test func `connections beyond the limits are closed at once, and others may come when one has ended`() async throws
    {
      try await withServer { limits in
        limits.connections = 3
        limits.connectionsPerAddress = 2
      } _: { port in
        let first = try RawClient(port: port)
        var second: RawClient? = try RawClient(port: port)
        for client in [first, second] {
          await client?.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
          #expect(await client?.text(until: "GET / - 0").hasPrefix("HTTP/1.1 200 ") == true)
        }
        #expect(await (try RawClient(port: port)).receive().isEmpty)
        second = nil
        // The server may notice it later.
        while true {
          let third = try RawClient(port: port)
          await third.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
          if await !third.receive().isEmpty { break }
        }
      }
    }

    @Test(arguments: ["HTTP/1.0", "HTTP/1.1"])
    func `a large reply arrives whole although it is the last one`(_ version: String) async throws {
      try await withServer { port in
        let client = try RawClient(port: port, receiveBuffer: 4096)
        await client.send("GET /large \(version)\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(await client.receive().count > 20 << 20)
      }
    }

    @Test func `a client that is told to go on and does not is disconnected`() async throws {
      try await withServer {
        $0.requestTime = .milliseconds(500)
      } _: { port in
        var text = ""
        // On a busy machine the time may be over before the server has read the request.
        while text.isEmpty {
          let client = try RawClient(port: port)
          await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
          text = String(decoding: await client.receive(), as: UTF8.self)
        }
        #expect(text.hasPrefix("HTTP/1.1 100 ") && !text.contains(" 200 "))
      }
    }

    @Test func `a client that has said nothing does not hold up the end`() async throws {
      // The time of a request is 75 seconds.
      var client: RawClient?
      try await withServer { port in
        client = try RawClient(port: port)
        let other = try RawClient(port: port)
        await other.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(await !other.receive().isEmpty)
      }
      #expect(await client?.receive().isEmpty == true)
    }

    @Test(arguments: ["", "GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123"])
    func `a client that does not complete its request is disconnected`(_ start: String) async throws {
      try await withServer {
        $0.requestTime = .milliseconds(50)
      } _: { port in
        let client = try RawClient(port: port)
        await client.send(start)
        _ = await client.receive()
      }
    }

    @Test func `a client that does not take a reply is disconnected, and little is made for it`() async throws {
      try await withServer { limits in
        limits.replyTime = .milliseconds(50)
        limits.connections = 1
      } _: { port in
        let client = try RawClient(port: port, receiveBuffer: 4096)
        await client.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        await echo.chunks.wait { $0 > 0 }
        // There is room for another connection when it has ended.
        while true {
          let other = try RawClient(port: port)
          await other.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
          if await !other.receive().isEmpty { break }
        }
        // As much as the system's buffers take, some megabytes.
        #expect(echo.chunks.value < 1000)
        withExtendedLifetime(client) {}
      }
    }

    // MARK: Sockets

    private func socket(_ port: Int) async throws -> RawClient {
      let client = try RawClient(port: port, receiveBuffer: 4096)
      await client.send(RawClient.upgrade)
      let text = await client.text(until: "\r\n\r\n")
      #expect(text.hasPrefix("HTTP/1.1 101 "))
      return client
    }

    @Test func `messages are answered in turn, also in pieces`() async throws {
      try await withServer { port in
        let client = try await socket(port)
        await client.send(RawClient.frame(1, Array("one".utf8)) + RawClient.frame(9, Array("p".utf8)))
        await client.send(RawClient.frame(1, Array("t".utf8), isFinal: false))
        await client.send(RawClient.frame(0, Array("wo".utf8)))
        let text = await client.text(until: "two")
        #expect(text.contains("one"))
        await client.send(RawClient.frame(8, [3, 232]))
        #expect(await client.receive().suffix(4) == [0x88, 2, 3, 232])
        await echo.closed.wait { $0 == 1 }
      }
    }

    @Test func `a socket that is not accepted gets a reply`() async throws {
      try await withServer { port in
        let client = try RawClient(port: port)
        await client.send(RawClient.upgrade.replacing("/socket", with: "/other"))
        #expect(await client.text(until: "GET /other - 0").hasPrefix("HTTP/1.1 200 "))
      }
    }

    @Test(arguments: [
      RawClient.frame(1, [UInt8](repeating: 0x61, count: 2000)),
      RawClient.frame(1, [UInt8](repeating: 0x61, count: 600), isFinal: false)
        + RawClient.frame(0, [UInt8](repeating: 0x61, count: 600)),
      RawClient.frame(0, [0x61]), RawClient.frame(3, [0x61]), [0xFF, 0xFF, 0xFF, 0xFF],
      RawClient.frame(1, Array("close".utf8)),
    ])
    func `messages that are too large, or no messages, end the socket`(_ bytes: [UInt8]) async throws {
      try await withServer { limits in
        limits.requestBytes = 1000
        // A frame that is not complete is waited for as long as the client answers pings.
        limits.pingInterval = .milliseconds(100)
      } _: { port in
        let client = try await socket(port)
        await client.send(bytes)
        _ = await client.receive()
        await echo.closed.wait { $0 == 1 }
      }
    }

    /// A socket whose client has not read for so long that writes wait.
    private func blockedSocket(_ port: Int) async throws -> RawClient {
      let client = try await socket(port)
      await client.send(RawClient.frame(1, Array("watch".utf8)))
      await echo.sockets.wait { $0.count == 1 }
      await client.send(RawClient.frame(1, Array("flood".utf8)))
      await echo.floods.wait { $0 == 1 }
      return client
    }

    @Test func `a socket that does not read is closed when too much waits for it`() async throws {
      try await withServer {
        $0.waitingBytes = 100_000
      } _: { port in
        let client = try await blockedSocket(port)
        let socket = echo.sockets.value[0]
        let message = [UInt8](repeating: 0x61, count: 1000)
        for _ in 0..<100_000 { socket.post(message) }
        await echo.closed.wait { $0 == 1 }
        // It costs nothing afterwards.
        for _ in 0..<100_000 { socket.post(message) }
        withExtendedLifetime(client) {}
      }
    }

    @Test func `a socket that does not read is closed when it does not take a reply`() async throws {
      try await withServer {
        $0.pingInterval = .milliseconds(500)
      } _: { port in
        let client = try await blockedSocket(port)
        await echo.closed.wait { $0 == 1 }
        withExtendedLifetime(client) {}
      }
    }

    @Test func `a socket that does not answer pings is closed`() async throws {
      try await withServer {
        $0.pingInterval = .milliseconds(20)
      } _: { port in
        let client = try await socket(port)
        let bytes = await client.receive()
        #expect(bytes.starts(with: [0x89, 0]))
        await echo.closed.wait { $0 == 1 }
      }
    }

    @Test func `a socket in the file system is for its user`() async throws {
      let folder = try TemporaryFolder()
      let path = folder.path("s")
      let server = try await HTTPServer(.unix(path: path), handler: echo)
      #expect(server.port == nil)
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let running = Task { await server.run() }
      running.cancel()
      await running.value
    }

    @Test func `addresses`() {
      #expect(ListenAddress("6800") == .tcp(host: "127.0.0.1", port: 6800))
      #expect(ListenAddress("0.0.0.0:1") == .tcp(host: "0.0.0.0", port: 1))
      #expect(ListenAddress("[::1]:2") == .tcp(host: "::1", port: 2))
      #expect(ListenAddress("unix:/a b") == .unix(path: "/a b"))
      for text in ["", "x", "65536", "-1", ":1", "unix:", "1:x", "+1"] {
        #expect(ListenAddress(text) == nil, "\(text)")
      }
    }
  }
#endif
