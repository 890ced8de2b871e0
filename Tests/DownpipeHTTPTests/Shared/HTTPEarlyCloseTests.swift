#if LIBCURL || AsyncHTTPClient
  import Dispatch
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// When a server closes the connection during a body (FIN), every byte that it sent is delivered.
  @Suite(.endsHangs)
  struct HTTPEarlyCloseTests {
    private static let count = 50
    private static let content = ScriptedContent.pattern(size: 2_000_000)

    /// The bytes received before the connection ends, and the error.
    private func receive(
      _ source: any SourceSession, _ url: URL, beforeReading: () async throws -> Void = {},
      sink: @escaping @Sendable (RawSpan) -> Void = { _ in }
    ) async throws -> (bytes: [UInt8], error: DownloadError?) {
      let reply = try await source.open(SourceRequest(url: url))
      let collector = Collector()
      try await beforeReading()
      let error = await downloadError {
        try await reply.body.forEachChunk {
          sink($0)
          collector.append($0)
        }
      }
      return (collector.bytes, error)
    }

    /// Checks that all bytes arrived and that the connection then ended early.
    private func expect(
      _ result: (bytes: [UInt8], error: DownloadError?), toBeCutOffAfter expected: [UInt8],
      _ location: SourceLocation = #_sourceLocation
    ) {
      #expect(result.bytes.count == expected.count, sourceLocation: location)
      // Compared outside of #expect, which would print the bytes.
      let isIdentical = result.bytes == expected
      #expect(isIdentical, sourceLocation: location)
      #expect(result.error?.code == .network, sourceLocation: location)
    }

    /// Runs trials with a server that closes the connection after the first `sent` bytes of the content.
    private func trials(
      _ tested: TestedSource, sent: Int64,
      _ trial: (_ source: any SourceSession, _ server: ScriptedHTTPServer, _ expected: [UInt8]) async throws -> Void
    ) async throws {
      let expected = Self.content.bytes(in: 0..<sent)
      try await withScriptedServer {
        .file(Self.content, for: $0).truncated(after: sent)
      } _: { server in
        try await withRunning(tested.source()) { source in
          for _ in 0..<Self.count { try await trial(source, server, expected) }
        }
      }
    }

    @Test(arguments: TestedSource.allCases, [70_000, 300_000, 1_000_000])
    func everyByteThatWasSentArrives(_ tested: TestedSource, _ sent: Int64) async throws {
      try await trials(tested, sent: sent) { source, server, expected in
        let result = try await receive(source, server.url())
        expect(result, toBeCutOffAfter: expected)
        #expect(result.error?.message.contains("\(sent) bytes") ?? false)
      }
    }

    @Test(arguments: TestedSource.allCases, [70_000, 200_000])
    func bytesBeforeReadingAreKept(_ tested: TestedSource, _ sent: Int64) async throws {
      try await trials(tested, sent: sent) { source, server, expected in
        let result = try await receive(source, server.url()) {
          try await server.until { $0.bytesSent >= sent && $0.openConnections == 0 }
        }
        expect(result, toBeCutOffAfter: expected)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aSlowSinkTakesEveryByte(_ tested: TestedSource) async throws {
      let yielding: @Sendable (RawSpan) -> Void = { _ in
        for _ in 0..<200 { sched_yield() }
      }
      try await trials(tested, sent: 1_000_000) { source, server, expected in
        let result = try await receive(source, server.url(), sink: yielding)
        expect(result, toBeCutOffAfter: expected)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aSinkThatBlocksUntilTheServerIsGoneTakesEveryByte(_ tested: TestedSource) async throws {
      try await trials(tested, sent: 200_000) { source, server, expected in
        let isGone = DispatchSemaphore(value: 0)
        async let gone: Void = {
          try await server.until { $0.requestCount > 0 && $0.openConnections == 0 }
          isGone.signal()
        }()
        let standing: @Sendable (RawSpan) -> Void = { _ in
          isGone.wait()
          isGone.signal()
        }
        let result = try await receive(source, server.url(), sink: standing)
        try await gone
        let isIdentical = result.bytes == expected
        #expect(isIdentical)
      }
    }

    /// The client delivers small chunks from its own queue in several turns of its event loop.
    @Test(arguments: TestedSource.allCases)
    func everyByteOfSmallChunksArrives(_ tested: TestedSource) async throws {
      let count = 20_000
      let piece = "a\r\n0123456789\r\n"
      let body = String(repeating: piece, count: count)
      try await withScriptedServer { _ in
        ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .send(body), .close])
      } _: { server in
        try await withRunning(tested.source()) { source in
          for _ in 0..<10 {
            let result = try await receive(source, server.url())
            #expect(result.bytes.count == 10 * count)
            #expect(result.error?.code == .network)
          }
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aWholeBodyBeforeTheCloseIsWhole(_ tested: TestedSource) async throws {
      let content = ScriptedContent.pattern(size: 300_000)
      try await withScriptedServer { _ in
        ScriptedReply([.head(200, []), .send(content), .close])
      } _: { server in
        try await withRunning(tested.source()) { source in
          for _ in 0..<Self.count {
            let result = try await receive(source, server.url())
            #expect(result.error == nil)
            #expect(result.bytes == content.allBytes)
          }
          // A reply that is dropped after the server is gone.
          let reply = try await source.open(SourceRequest(url: server.url()))
          try await server.until { $0.openConnections == 0 }
          reply.body.discard()
          #expect(try await source.fetch(server.url()).bytes == content.allBytes)
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func anUnreadBodyEndsWithItsSource(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, for: $0).truncated(after: 200_000)
      } _: { server in
        let source = try await tested.source().start(in: SourceContext())
        let reply = try await source.open(SourceRequest(url: server.url()))
        try await server.until { $0.openConnections == 0 }
        await source.stop()
        let error = await downloadError { try await reply.body.forEachChunk { _ in } }
        #expect(error?.code == .shutDown)
      }
    }
  }
#endif
