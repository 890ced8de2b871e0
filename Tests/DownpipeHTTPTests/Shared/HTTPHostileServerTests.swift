#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct HTTPHostileServerTests {
    private static let answers: [HostileAnswer] = [
      HostileAnswer("no answer", [.close], .network),
      HostileAnswer("reset", [.reset], .network),
      HostileAnswer("garbage", ScriptedReply.garbage.steps, .invalidResponse),
      HostileAnswer("HTTP/0.9", "<html>hello</html>\n", .invalidResponse),
      HostileAnswer("half a head", "HTTP/1.1 200 OK\r\nContent-Le", .network),
      HostileAnswer("bad status", "HTTP/1.1 9999 OK\r\n\r\n", .invalidResponse),
      HostileAnswer("bad version", "HTTP/7.9 200 OK\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      HostileAnswer("negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", .invalidResponse),
      HostileAnswer(
        "huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhi", .invalidResponse),
      HostileAnswer("length with letters", "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", .invalidResponse),
      HostileAnswer(
        "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", .invalidResponse),
      HostileAnswer("NUL in a header", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      HostileAnswer(
        "header line without colon", "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n", .invalidResponse),
      HostileAnswer(
        "one endless header", [.send("HTTP/1.1 200 OK\r\nX: "), .content(.text(long), 0..<(1 << 20)), .close],
        .invalidResponse),
      HostileAnswer(
        "endless headers",
        [.send("HTTP/1.1 200 OK\r\n"), .send(String(repeating: "A: b\r\n", count: 100_000)), .close],
        .invalidResponse),
      HostileAnswer(
        "garbage for a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        .invalidResponse),
      HostileAnswer(
        "endless chunk size",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffffffff\r\nhello\r\n", .invalidResponse),
      HostileAnswer("chunk without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", .network),
      // libcurl does not see these two, and would pass the chunks as they are.
      HostileAnswer(
        "folded coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        .invalidResponse),
      HostileAnswer(
        "blank after coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        .invalidResponse),
      HostileAnswer("short body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", .network),
      HostileAnswer("reset body", [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .reset], .network),
    ]
    private static let long = String(repeating: "a", count: 1 << 20)

    @Test(arguments: TestedSource.allCases, answers)
    func endsWithAClearError(_ tested: TestedSource, _ answer: HostileAnswer) async throws {
      try await answer.endsWithAClearError(tested.source())
    }

    @Test(arguments: TestedSource.allCases)
    func bytesPastTheLengthAreNotDelivered(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more\r\nHTTP/1.1 200 OK\r\n\r\n")])
      } _: { server in
        try await withRunning(tested.source()) { source in
          for _ in 0..<3 {
            // Leftover bytes on a connection may make its next use fail, but must not be taken for an answer.
            let fetched = try? await source.fetch(server.url())
            #expect(fetched.map { $0.bytes == Array("hello".utf8) } ?? true)
          }
        }
        #expect(server.activity.requestCount >= 1)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func saysHowManyBytesCame(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(.pattern(size: 5000), for: $0).truncated(after: 1234)
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        let collector = Collector()
        let error = await downloadError { try await reply.body.forEachChunk { collector.append($0) } }
        #expect(collector.bytes == ScriptedContent.pattern(size: 5000).bytes(in: 0..<1234))
        #expect(error?.message.contains("1234 bytes") ?? false)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func endlessInformationalAnswersRunIntoTheIdleLimit(_ tested: TestedSource) async throws {
      let endless = [ScriptedReply.Step](repeating: .send("HTTP/1.1 102 Processing\r\n\r\n"), count: 100_000)
      try await withScriptedServer { _ in
        ScriptedReply([.throttle(bytesPerSecond: 10_000)] + endless)
      } _: { server in
        let source = tested.source { $0.idleTimeLimit = .milliseconds(100) }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .timedOut)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func trailersAreLimited(_ tested: TestedSource) async throws {
      let trailer = "T: \(String(repeating: "b", count: 500))\r\n"
      try await withScriptedServer { _ in
        ScriptedReply([
          .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"),
          .send(String(repeating: trailer, count: 2000)), .send("\r\n"),
        ])
      } _: { server in
        let error = await downloadError { try await tested.source().fetch(server.url()) }
        #expect(error?.code == .invalidResponse)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aHeadMustBeCompleteWithinTheIdleLimit(_ tested: TestedSource) async throws {
      let lines = [ScriptedReply.Step](repeating: .send("X: y\r\n"), count: 2000)
      try await withScriptedServer { _ in
        ScriptedReply([.send("HTTP/1.1 200 OK\r\n"), .throttle(bytesPerSecond: 500)] + lines)
      } _: { server in
        let source = tested.source { $0.idleTimeLimit = .milliseconds(300) }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .timedOut)
      }
    }
  }
#endif
