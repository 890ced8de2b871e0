#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import HangLimit
  import Synchronization
  import Testing

  /// Cancelled tasks, and bodies that are not read.
  @Suite(.endsHangs)
  struct HTTPCancellationTests {
    private static let endless = HTTPFlowTests.endless

    // MARK: Cancelling

    @Test(arguments: TestedSource.allCases)
    func cancellingBeforeTheHead(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer { _ in
        ScriptedReply([.hold(gate)])
      } _: { server in
        let task = Task { try await tested.source().open(SourceRequest(url: server.url())) }
        await gate.arrivals(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func cancellingBeforeItBegan(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let url = server.url()
        let begin = ServerGate()
        let task = Task {
          await begin.wait()
          return try await tested.source().open(SourceRequest(url: url))
        }
        task.cancel()
        begin.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(server.activity.requestCount == 0)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func cancellingInTheMiddleOfTheBody(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer {
        .file(Self.endless, for: $0).held(at: gate, after: 1000)
      } _: { server in
        try await withRunning(tested.source()) { source in
          let received = Atomic<Int>(0)
          let task = Task {
            let reply = try await source.open(SourceRequest(url: server.url()))
            try await reply.body.forEachChunk { received.add($0.byteCount, ordering: .relaxed) }
          }
          await gate.arrivals(1)
          task.cancel()
          await #expect(throws: CancellationError.self) { try await task.value }
          #expect(received.load(ordering: .relaxed) <= 1000)
          try await server.until { $0.openConnections == 0 }
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func cancellingAnUnreadBodyThatHasArrived(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("all of it"))
      } _: { server in
        try await withRunning(tested.source()) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let begin = ServerGate()
          let task = Task {
            await begin.wait()
            try await reply.body.forEachChunk { _ in }
          }
          task.cancel()
          begin.open()
          await #expect(throws: CancellationError.self) { try await task.value }
        }
      }
    }

    // MARK: Unread bodies

    @Test(arguments: TestedSource.allCases)
    func discardingEndsTheRequest(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.endless, for: $0)
      } _: { server in
        try await withRunning(tested.source()) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          reply.body.discard()
          try await server.until { $0.openConnections == 0 }
          let error = await downloadError { try await reply.body.forEachChunk { _ in } }
          #expect(error?.code == .cancelled)
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func droppingEndsTheRequest(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.endless, for: $0)
      } _: { server in
        try await withRunning(tested.source()) { source in
          _ = try await source.open(SourceRequest(url: server.url()))
          try await server.until { $0.connections == 1 && $0.openConnections == 0 }
        }
        // Without a downloader the session ends with the reply.
        _ = try await tested.source().open(SourceRequest(url: server.url()))
        try await server.until { $0.connections == 2 && $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aBodyIsReadOnce(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("once"))
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        try await reply.body.forEachChunk { _ in }
        let error = await downloadError { try await reply.body.forEachChunk { _ in } }
        #expect(error?.code == .invalidRequest)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func stoppingDoesNotWaitForUnreadBodies(_ tested: TestedSource) async throws {
      let gate = ServerGate()
      try await withScriptedServer { request in
        switch request.path {
        case "/small": ScriptedReply(200, body: .text("small"))
        case "/held": ScriptedReply([.hold(gate)])
        default: .file(Self.endless, for: request)
        }
      } _: { server in
        let source = try await tested.source().start(in: SourceContext())
        let small = try await source.open(SourceRequest(url: server.url("/small")))
        let large = try await source.open(SourceRequest(url: server.url("/large")))
        let asking = Task { try await source.open(SourceRequest(url: server.url("/held"))) }
        await gate.arrivals(1)
        await source.stop()
        await source.stop()
        for reply in [small, large] {
          let error = await downloadError { try await reply.body.forEachChunk { _ in } }
          #expect(error?.code == .shutDown)
        }
        let error = await downloadError { try await asking.value }
        #expect(error?.code == .shutDown)
        let late = await downloadError { try await source.open(SourceRequest(url: server.url("/small"))) }
        #expect(late?.code == .shutDown)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aSourceThatIsNeverStoppedClosesItsConnections(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("ok"))
      } _: { server in
        _ = try await tested.source().start(in: SourceContext()).fetch(server.url())
        try await server.until { $0.openConnections == 0 }
      }
    }
  }
#endif
