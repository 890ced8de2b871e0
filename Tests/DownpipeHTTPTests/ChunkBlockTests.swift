#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeHTTP

  /// Chunks of large bodies are collected before their sinks are called.
  @Suite("Collected chunks", .endsHangs)
  struct ChunkBlockTests {
    private static let size: Int64 = 5_000_000

    private final class Progress: Sendable {
      let received = Atomic<Int64>(0)
      let hasThrown = Atomic(false)
    }

    private func withSession(
      _ reply: @escaping @Sendable (ScriptedRequest) -> ScriptedReply,
      _ body: (HTTPSession, ScriptedHTTPServer) async throws -> Void
    ) async throws {
      try await withScriptedServer(reply) { server in
        let session = try HTTPSession(HTTPSource.Configuration(), threads: 1)
        try await body(session, server)
        await session.stop()
      }
    }

    @Test("Bodies that share a thread are whole and in order, and no chunk is larger than the block")
    func shared() async throws {
      let contents = (0..<6).map { ScriptedContent.pattern(size: Self.size, seed: UInt64($0)) }
      try await withSession { request in
        ScriptedReply(200, body: contents[Int(request.path.dropFirst()) ?? 0])
      } _: { session, server in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (number, content) in contents.enumerated() {
            group.addTask {
              let collector = Collector()
              let reply = try await session.open(SourceRequest(url: server.url("/\(number)")))
              try await reply.body.forEachChunk { chunk in
                #expect(chunk.byteCount > 0 && chunk.byteCount <= ChunkBlock.capacity)
                collector.append(chunk)
              }
              let isWhole = collector.bytes == content.bytes(in: 0..<Self.size)
              #expect(isWhole)
            }
          }
          try await group.waitForAll()
        }
      }
    }

    /// The server goes on only after the sink has the bytes before.
    @Test("Bytes do not wait for other bytes", arguments: [16_384, 20_000, 65_536, 262_144, 300_000])
    func stalled(sent: Int64) async throws {
      let gate = ServerGate()
      let content = ScriptedContent.pattern(size: Self.size)
      try await withSession { _ in
        ScriptedReply([
          .head(200, ["Content-Length": "\(Self.size)"]), .content(content, 0..<sent), .hold(gate),
          .content(content, sent..<Self.size),
        ])
      } _: { session, server in
        let collector = Collector()
        let progress = Progress()
        let reply = try await session.open(SourceRequest(url: server.url()))
        try await reply.body.forEachChunk { chunk in
          collector.append(chunk)
          let count = progress.received.add(Int64(chunk.byteCount), ordering: .relaxed).newValue
          if count == sent { gate.open() }
        }
        let isWhole = collector.bytes == content.bytes(in: 0..<Self.size)
        #expect(isWhole)
      }
    }

    @Test("A sink that throws is not called again, and fails its own transfer only")
    func throwing() async throws {
      struct Refusal: Error {}
      let content = ScriptedContent.pattern(size: Self.size)
      try await withSession { _ in
        ScriptedReply(200, body: content)
      } _: { session, server in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<8 {
            group.addTask {
              let reply = try await session.open(SourceRequest(url: server.url("/\(number)")))
              let progress = Progress()
              let fails = number % 2 == 0
              let result: Result<Void, any Error>
              do {
                try await reply.body.forEachChunk { chunk in
                  let isCalledAgain = progress.hasThrown.load(ordering: .relaxed)
                  #expect(!isCalledAgain)
                  let count = progress.received.add(Int64(chunk.byteCount), ordering: .relaxed).newValue
                  guard fails, count > 1_000_000 else { return }
                  progress.hasThrown.store(true, ordering: .relaxed)
                  throw Refusal()
                }
                result = .success(())
              } catch {
                result = .failure(error)
              }
              if fails {
                #expect(throws: Refusal.self) { try result.get() }
              } else {
                #expect(throws: Never.self) { try result.get() }
                let received = progress.received.load(ordering: .relaxed)
                #expect(received == Self.size)
              }
            }
          }
          try await group.waitForAll()
        }
      }
    }

    @Test("The bytes before a lost connection reach the sink")
    func lost() async throws {
      let content = ScriptedContent.pattern(size: Self.size)
      try await withSession { _ in
        ScriptedReply([
          .head(200, ["Content-Length": "\(Self.size)"]), .content(content, 0..<1_234_567), .close,
        ])
      } _: { session, server in
        let collector = Collector()
        let reply = try await session.open(SourceRequest(url: server.url()))
        await #expect(throws: DownloadError.self) { try await reply.body.forEachChunk { collector.append($0) } }
        let isPrefix = collector.bytes == content.bytes(in: 0..<1_234_567)
        #expect(isPrefix)
      }
    }
  }
#endif
