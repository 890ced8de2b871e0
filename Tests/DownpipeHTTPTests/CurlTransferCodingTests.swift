#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct CurlTransferCodingTests {
    /// NIO's parser refuses a response with both fields.
    @Test func identityDoesNotHideThatABodyIsCutShort() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([
          .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 100\r\n\r\nhello, world"), .close,
        ])
      } _: { server in
        let reply = try await HTTPSource().open(SourceRequest(url: server.url()))
        #expect(reply.length == .known(100), "the engine compares the body with it")
        reply.body.discard()
      }
    }
  }
#endif
