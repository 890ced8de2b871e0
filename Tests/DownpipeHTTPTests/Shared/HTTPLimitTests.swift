#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Time limits, and connections that cannot be opened.
  @Suite(.endsHangs)
  struct HTTPLimitTests {
    @Test(arguments: TestedSource.allCases)
    func silenceBeforeTheHead(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer { _ in
        ScriptedReply([.hold(gate)])
      } _: { server in
        let source = tested.source { $0.idleTimeLimit = .milliseconds(50) }
        let error = await downloadError { try await source.open(SourceRequest(url: server.url())) }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("0.05 s") ?? false)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func silenceInTheBody(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer {
        .file(HTTPFlowTests.endless, for: $0).held(at: gate, after: 10)
      } _: { server in
        let source = tested.source { $0.idleTimeLimit = .milliseconds(50) }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .timedOut)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aBodyThatWaitsForItsReaderIsNotSilent(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      let content = ScriptedContent.pattern(size: 64 << 20)
      try await withScriptedServer { request in
        request.path == "/file" ? .file(content, for: request) : ScriptedReply([.hold(gate)])
      } _: { server in
        // Much longer than a busy machine takes between two chunks.
        let source = tested.source { $0.idleTimeLimit = .seconds(10) }
        let reply = try await source.open(SourceRequest(url: server.url("/file")))
        // The limit of another request expires meanwhile; it must not apply to this one.
        let error = await downloadError { try await source.open(SourceRequest(url: server.url("/held"))) }
        #expect(error?.code == .timedOut)
        try await reply.body.forEachChunk { _ in }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aSlowAnswerExceedsTheTotalLimit(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        ScriptedReply([.throttle(bytesPerSecond: 1000)] + ScriptedReply.file(HTTPFlowTests.endless, for: request).steps)
      } _: { server in
        let source = tested.source { $0.totalTimeLimit = .milliseconds(300) }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("not complete within the time limit of 0.3 seconds") ?? false)
      }
    }

    // MARK: Connections that cannot be opened

    @Test(arguments: TestedSource.allCases)
    func nothingListens(_ tested: TestedSource) async throws {
      let port = try RefusingPort()
      let error = await downloadError { try await tested.source().fetch(port.url()) }
      #expect(error?.code == .network)
      #expect(error?.message.contains(": Connection refused (errno ") ?? false)
    }

    @Test(arguments: TestedSource.allCases)
    func theNameIsUnknown(_ tested: TestedSource) async throws {
      let url = try #require(URL(string: "http://no-such-host.invalid/"))
      let error = await downloadError { try await tested.source().fetch(url) }
      #expect(error?.code == .hostNotFound)
    }
  }
#endif
