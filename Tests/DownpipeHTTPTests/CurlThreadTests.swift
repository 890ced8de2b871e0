#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeHTTP

  /// What the transfers of one thread and the connections of libcurl could do to each other.
  @Suite(.endsHangs)
  struct CurlThreadTests {
    /// A response that was not asked for stays in the connection, and would be taken for the next one.
    @Test func bytesAfterAResponseAreNotTheNextResponse() async throws {
      let sent = ServerGate()
      try await withScriptedServer { _ in
        ScriptedReply([
          .head(200, ["Content-Length": "5"]), .send("right"),
          .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"), .hold(sent),
        ])
      } _: { server in
        try await withRunning { source in
          for number in 1...10 {
            let bytes = try await source.fetch(server.url()).bytes
            #expect(bytes == Array("right".utf8))
            await sent.arrivals(number)
          }
        }
        sent.open()
      }
    }

    /// The head of a short body waits for the body only while bytes arrive.
    @Test func aHeadDoesNotWaitForABodyThatDoesNotCome() async throws {
      let held = ServerGate()
      try await withScriptedServer { _ in
        ScriptedReply([.head(200, ["Content-Length": "10"]), .send("short"), .hold(held), .send("later")])
      } _: { server in
        try await withRunning { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          held.open()
          let collector = Collector()
          try await reply.body.forEachChunk { collector.append($0) }
          #expect(collector.bytes == Array("shortlater".utf8))
        }
      }
    }

    /// A connection may take longer than the lease: the name is looked up, and the process is stopped and goes on.
    @Test func nothingIsSentWhenTheLeaseIsOverOnceThereIsAConnection() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("right"))
      } _: { server in
        try await withRunning { source in
          // Over a new connection, and over one that was idle.
          for _ in 1...2 {
            let checks = Atomic(0)
            let over = RequestLease { checks.add(1, ordering: .relaxed).newValue == 1 }
            await #expect(throws: CancellationError.self) {
              _ = try await source.open(SourceRequest(url: server.url(), lease: over))
            }
            let bytes = try await source.fetch(server.url()).bytes
            #expect(bytes == Array("right".utf8))
          }
        }
        #expect(server.activity.requestCount == 2)
        #expect(server.activity.connections >= 2)
      }
    }

    /// A body that has come with its head has no transfer any more, and is read and given up like any other.
    @Test func aShortBodyIsReadOnce() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.head(200, ["Content-Length": "5"]), .send("right")])
      } _: { server in
        try await withRunning { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let collector = Collector()
          try await reply.body.forEachChunk { collector.append($0) }
          #expect(collector.bytes == Array("right".utf8))
          await #expect(throws: DownloadError.self) { try await reply.body.forEachChunk { collector.append($0) } }
          let unwanted = try await source.open(SourceRequest(url: server.url()))
          unwanted.body.discard()
          await #expect(throws: DownloadError.self) { try await unwanted.body.forEachChunk { collector.append($0) } }
          #expect(collector.bytes.count == 5)
        }
      }
    }

    /// The second request is sent although the server has not answered the first one.
    @Test func requestsToOneHostDoNotWaitForEachOther() async throws {
      let held = ServerGate()
      try await withScriptedServer { request in
        request.path == "/held"
          ? ScriptedReply([.hold(held), .head(200, ["Content-Length": "0"])]) : ScriptedReply(200)
      } _: { server in
        try await withRunning { source in
          async let first = source.fetch(server.url("/held"))
          try await server.until { $0.requestCount == 1 }
          for _ in 0..<3 { _ = try await source.fetch(server.url("/other")) }
          held.open()
          _ = try await first
        }
      }
    }

    /// libcurl reads many buffers of one transfer before it returns: with sinks that take long, a command would wait for
    /// all of them. The bytes stay complete and in order although the transfers are interrupted.
    @Test func slowSinksDoNotHoldCommandsUp() async throws {
      let content = ScriptedContent.pattern(size: 1_000_000)
      try await withScriptedServer { _ in
        ScriptedReply(200, body: content)
      } _: { server in
        try await withRunning { source in
          try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
              group.addTask {
                let collector = Collector()
                let reply = try await source.open(SourceRequest(url: server.url()))
                try await reply.body.forEachChunk { chunk in
                  collector.append(chunk)
                  let end = ContinuousClock.now + .milliseconds(5)
                  while ContinuousClock.now < end {}
                }
                let isWhole = collector.bytes == content.bytes(in: 0..<1_000_000)
                #expect(isWhole)
              }
            }
            for _ in 0..<20 {
              let reply = try await source.open(SourceRequest(url: server.url()))
              reply.body.discard()
            }
            try await group.waitForAll()
          }
        }
      }
    }

    /// Many transfers of one thread have smaller buffers than a few: their bodies are none the less whole.
    @Test func manyTransfersAtOnceAreWhole() async throws {
      let size: Int64 = 40_000
      let content = ScriptedContent.pattern(size: size)
      let all = ServerGate()
      try await withScriptedServer { _ in
        ScriptedReply([.head(200, ["Content-Length": "\(size)"]), .hold(all), .send(content)])
      } _: { server in
        let session = try HTTPSession(HTTPSource.Configuration(), threads: 1)
        try await withThrowingTaskGroup(of: Bool.self) { group in
          for _ in 0..<300 {
            group.addTask {
              let collector = Collector()
              let reply = try await session.open(SourceRequest(url: server.url()))
              try await reply.body.forEachChunk { collector.append($0) }
              return collector.bytes == content.bytes(in: 0..<size)
            }
          }
          await all.arrivals(300)
          all.open()
          for try await isWhole in group { #expect(isWhole) }
        }
        await session.stop()
      }
      let sizes = [0, 32, 33, 256, 257, 513, 2049].map(ReceiveBuffer.bytes(ofTransfers:))
      #expect(sizes == [256, 256, 32, 32, 8, 4, 2].map { $0 * 1024 })
    }
  }
#endif
