#if LIBCURL || AsyncHTTPClient
  import Dispatch
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  /// Back-pressure, order and errors of the sink.
  @Suite(.endsHangs)
  struct HTTPFlowTests {
    /// Larger than all buffers between server and sink.
    static let endless = ScriptedContent.pattern(size: 1 << 40)
    static let buffers: Int64 = 48 << 20

    @Test(arguments: TestedSource.allCases)
    func anUnreadBodyHoldsTheServerUp(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.endless, for: $0)
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        try await server.until { $0.stalls > 0 }
        #expect(server.activity.bytesSent < Self.buffers)
        reply.body.discard()
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aSlowSinkHoldsTheServerUp(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.endless, for: $0)
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        let (entered, release) = (ServerGate(), DispatchSemaphore(value: 0))
        let received = Atomic<Int64>(0)
        struct Enough: Error {}
        let reading = Task {
          try await reply.body.forEachChunk { span in
            let before = received.load(ordering: .relaxed)
            received.store(before + Int64(span.byteCount), ordering: .relaxed)
            if before == 0 {
              entered.open()
              release.wait()
            }
            if before > 1 << 20 { throw Enough() }
          }
        }
        await entered.wait()
        try await server.until { $0.stalls > 0 }
        #expect(server.activity.bytesSent < Self.buffers)
        release.signal()
        await #expect(throws: Enough.self) { try await reading.value }
        #expect(received.load(ordering: .relaxed) < 3 << 20)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func deliversInOrderAndNeverEmpty(_ tested: TestedSource) async throws {
      let content = ScriptedContent.pattern(size: 20 << 20)
      try await withScriptedServer {
        .file(content, for: $0)
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        let state = Mutex((position: Int64(0), faults: 0))
        try await reply.body.forEachChunk { span in
          state.withLock { state in
            if span.isEmpty || !content.matches(span, at: state.position) { state.faults += 1 }
            state.position += Int64(span.byteCount)
          }
        }
        let (position, faults) = state.withLock { $0 }
        #expect(position == 20 << 20)
        #expect(faults == 0)
      }
    }

    /// Small bodies arrive completely before they are read. The sizes are around the limit of the buffer.
    @Test(arguments: TestedSource.allCases, [1, 65_535, 65_536, 65_537, 400_000] as [Int64])
    func aBodyThatHasArrivedIsWhole(_ tested: TestedSource, _ size: Int64) async throws {
      let content = ScriptedContent.pattern(size: size)
      try await withScriptedServer {
        .file(content, for: $0).setting(["Connection": "close"])
      } _: { server in
        try await withRunning(tested.source()) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          // The connection closes only after the body has arrived.
          if size < 65_536 { try await server.until { $0.openConnections == 0 } }
          let collector = Collector()
          try await reply.body.forEachChunk { collector.append($0) }
          #expect(collector.bytes == content.allBytes)
          let again = await downloadError { try await reply.body.forEachChunk { _ in } }
          #expect(again?.code == .invalidRequest)
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func theSinkOfABodyThatHasArrivedMayThrow(_ tested: TestedSource) async throws {
      struct Full: Error {}
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Connection": "close"], body: .text("all of it"))
      } _: { server in
        try await withRunning(tested.source()) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          try await server.until { $0.openConnections == 0 }
          await #expect(throws: Full.self) { try await reply.body.forEachChunk { _ in throw Full() } }
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func bytesAreNotAskedForBeforeASinkIsThere(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer {
        .file(.pattern(size: 100), for: $0).held(at: gate)
      } _: { server in
        // `open` returns after the head.
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        #expect(reply.length == .known(100))
        gate.open()
        let collector = Collector()
        try await reply.body.forEachChunk { collector.append($0) }
        #expect(collector.bytes.count == 100)
      }
    }

    // MARK: Errors of the sink

    @Test(arguments: TestedSource.allCases)
    func rethrowsWhatTheSinkThrows(_ tested: TestedSource) async throws {
      struct Full: Error, Equatable {}
      try await withScriptedServer {
        .file(Self.endless, for: $0)
      } _: { server in
        try await withRunning(tested.source()) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let calls = Atomic<Int>(0)
          await #expect(throws: Full.self) {
            try await reply.body.forEachChunk { _ in
              calls.add(1, ordering: .relaxed)
              throw Full()
            }
          }
          #expect(calls.load(ordering: .relaxed) == 1)
          try await server.until { $0.openConnections == 0 }
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func manyAtOnce(_ tested: TestedSource) async throws {
      let content = ScriptedContent.pattern(size: 10_000)
      try await withScriptedServer {
        .file(content, for: $0)
      } _: { server in
        try await withRunning(tested.source()) { source in
          let expected = content.allBytes
          let url = server.url()
          let right = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<200 { group.addTask { try await source.fetch(url).bytes == expected } }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
          }
          #expect(right == 200)
        }
      }
    }
  }
#endif
