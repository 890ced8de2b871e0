#if AsyncHTTPClient
  import DownpipeCore
  import DownpipeAsyncHTTPClient
  import DownpipeTesting
  import Foundation
  import Testing

  @Suite(.timeLimit(.minutes(5)))
  struct AsyncHTTPClientHostileServerTests {
    struct Case: Sendable, CustomTestStringConvertible {
      var testDescription: String
      var steps: [ScriptedReply.Step]
      var code: DownloadError.Code

      init(_ name: String, _ text: String, _ code: DownloadError.Code) {
        testDescription = name
        steps = [.send(text), .close]
        self.code = code
      }
      init(_ name: String, _ steps: [ScriptedReply.Step], _ code: DownloadError.Code) {
        testDescription = name
        self.steps = steps
        self.code = code
      }
    }

    static let cases: [Case] = [
      Case("no answer", [.close], .network),
      Case("reset", [.reset], .network),
      Case("garbage", ScriptedReply.garbage.steps, .invalidResponse),
      Case("HTTP/0.9", "<html>hello</html>\n", .invalidResponse),
      Case("half a head", "HTTP/1.1 200 OK\r\nContent-Le", .network),
      Case("bad status", "HTTP/1.1 9999 OK\r\n\r\n", .invalidResponse),
      Case("bad version", "HTTP/7.9 200 OK\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      Case("negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", .invalidResponse),
      Case("huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhi", .invalidResponse),
      Case("length with letters", "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", .invalidResponse),
      Case("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", .invalidResponse),
      Case("NUL in a header", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      Case("space in a header's name", "HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      Case(
        "header line without colon", "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      Case(
        "one endless header", [.send("HTTP/1.1 200 OK\r\nX: "), .content(.text(long), 0..<(1 << 20)), .close],
        .invalidResponse),
      Case(
        "endless headers",
        [.send("HTTP/1.1 200 OK\r\n"), .send(String(repeating: "A: b\r\n", count: 100_000)), .close],
        .invalidResponse),
      Case(
        "garbage for a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        .invalidResponse),
      Case(
        "endless chunk size",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffffffff\r\nhello\r\n", .invalidResponse),
      Case("chunk without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", .network),
      Case("short body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", .network),
      Case("reset body", [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .reset], .network),
    ]
    static let long = String(repeating: "a", count: 1 << 20)

    @Test(arguments: cases)
    func endsWithAClearError(_ example: Case) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(example.steps)
      } _: { server in
        let error = await downloadError { try await AsyncHTTPClientSource().fetch(server.url()) }
        #expect(error?.code == example.code, "\(error.map(String.init(describing:)) ?? "no error")")
        #expect((error?.message.count ?? 0) > 20)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test func bytesPastTheLengthAreNotDelivered() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more\r\nHTTP/1.1 200 OK\r\n\r\n")])
      } _: { server in
        try await withRunning(AsyncHTTPClientSource()) { source in
          for _ in 0..<3 {
            // Leftover bytes on a connection may make its next use fail, but must not be taken for an answer.
            let fetched = try? await source.fetch(server.url())
            #expect(fetched.map { $0.bytes == Array("hello".utf8) } ?? true)
          }
        }
        #expect(server.activity.requestCount >= 1)
      }
    }

    @Test func saysHowManyBytesCame() async throws {
      try await withScriptedServer {
        .file(.pattern(size: 5000), for: $0).truncated(after: 1234)
      } _: { server in
        let reply = try await AsyncHTTPClientSource().open(SourceRequest(url: server.url()))
        let collector = Collector()
        let error = await downloadError { try await reply.body.forEachChunk { collector.append($0) } }
        #expect(collector.bytes == ScriptedContent.pattern(size: 5000).bytes(in: 0..<1234))
        #expect(error?.message.contains("1234 bytes") ?? false)
      }
    }

    @Test func endlessInformationalAnswersRunIntoTheIdleLimit() async throws {
      let endless = [ScriptedReply.Step](
        repeating: .send("HTTP/1.1 102 Processing\r\n\r\n"), count: 100_000)
      try await withScriptedServer { _ in
        ScriptedReply([.throttle(bytesPerSecond: 10_000)] + endless)
      } _: { server in
        let source = AsyncHTTPClientSource { $0.idleTimeLimit = .milliseconds(100) }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .timedOut)
      }
    }
  }
#endif
