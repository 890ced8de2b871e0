import Dispatch
import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Synchronization
import Testing

extension URLSessionTests {
  @Suite(.endsHangs)
  struct BackPressureTests {
    @Test func aSinkThatBlocksHoldsTheServerUp() async throws {
      let content = ScriptedContent.pattern(size: 64 << 20)
      var configuration = URLSessionSource.Configuration.ephemeral
      // A busy machine may start the sink late.
      configuration.unreadTimeLimit = .seconds(60)
      try await withScriptedServer {
        .file(content, for: $0)
      } _: { server in
        try await withSource(configuration) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let check = BodyCheck(content)
          let hasBegun = Mutex(false)
          let release = DispatchSemaphore(value: 0)
          async let reading = reply.body.forEachChunk { chunk in
            // Blocks in the first chunk.
            if hasBegun.withLock({ exchange(&$0, with: true) }) == false { release.wait() }
            try check.sink(chunk)
          }
          try await server.until { $0.stalls > 0 }
          let sent = server.activity.bytesSent
          // The socket buffers of both sides, the buffer of libcurl, and the chunks buffered before the sink.
          #expect(sent < 24 << 20, "the client took \(sent) bytes while its sink was blocked")
          release.signal()
          try await reading
          #expect(check.end == content.size)
        }
      }
    }

    @Test func aReplyThatIsNotReadEnds() async throws {
      let content = ScriptedContent.pattern(size: 64 << 20)
      var configuration = URLSessionSource.Configuration.ephemeral
      configuration.unreadTimeLimit = .seconds(5)
      let held = ServerGate()
      try await withScriptedServer { request in
        let reply = ScriptedReply.file(content, for: request)
        return request.path == "/other" ? reply.held(at: held, after: 1 << 20) : reply
      } _: { server in
        try await withSource(configuration) { source in
          let other = BodyCheck(content)
          let hasBegun = ServerGate()
          let otherReply = try await source.open(SourceRequest(url: server.url("/other")))
          async let reading = otherReply.body.forEachChunk { chunk in
            hasBegun.open()
            try other.sink(chunk)
          }
          // However late a busy machine starts its reader, that reply is read.
          await hasBegun.wait()
          let unread = try await source.open(SourceRequest(url: server.url("/unread")))
          held.open()
          // The unread one delays it only for a limited time.
          try await reading
          #expect(other.end == content.size)

          let check = BodyCheck(content)
          let error = await downloadError { try await unread.body.forEachChunk(check.sink) }
          #expect(error?.code == .network)
          // The buffered part is correct.
          let end = try #require(check.end)
          #expect(end > 0 && end <= 2 << 20)
        }
      }
    }

    @Test func aSinkThatThrowsEndsTheTransfer() async throws {
      struct Full: Error {}
      let content = ScriptedContent.pattern(size: 64 << 20)
      try await withScriptedServer {
        .file(content, for: $0)
      } _: { server in
        try await withSource { source in
          let calls = Mutex(0)
          await #expect(throws: Full.self) {
            try await source.open(SourceRequest(url: server.url())).body.forEachChunk { _ in
              if calls.withLock({ count in
                count += 1
                return count
              }) == 100 {
                throw Full()
              }
            }
          }
          #expect(calls.withLock { $0 } == 100)
        }
      }
    }
  }
}
