#if AsyncHTTPClient
  import DownpipeCore
  import DownpipeAsyncHTTPClient
  import DownpipeTesting
  import Foundation
  import Testing

  /// Transfer codings over real sockets: NIO's parser reads the field before the core does.
  @Suite(.timeLimit(.minutes(5)))
  struct AsyncHTTPClientTransferCodingTests {
    private static let text = "hello, world"
    private static let framed = "c\r\nhello, world\r\n0\r\n\r\n"

    private func fetch(_ fields: String, _ body: String) async throws -> (bytes: [UInt8]?, error: DownloadError?) {
      try await result(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)", from: AsyncHTTPClientSource())
    }

    @Test(arguments: [
      "chunked", "Chunked", "CHUNKED", "chunked ", "\tchunked", "identity, chunked", "chunked, chunked",
      "chunked\r\nTransfer-Encoding: chunked", "identity\r\nTransfer-Encoding: chunked",
    ])
    func chunkedIsDecoded(_ value: String) async throws {
      let result = try await fetch("Transfer-Encoding: \(value)\r\n", Self.framed)
      #expect(result.bytes == Array(Self.text.utf8), "\(String(describing: result.error))")
    }

    @Test func identityIsTheBodyItself() async throws {
      let result = try await fetch("Transfer-Encoding: identity\r\n", Self.text)
      #expect(result.bytes == Array(Self.text.utf8), "\(String(describing: result.error))")
    }

    static let unsound = [
      "chunked, another", "another, chunked", "foo", "gzip", "deflate", "gzip, chunked", "chunked, gzip",
      "chunked, identity", "chunked;q=1", "chunked ; a=b", "\"chunked\"",
      "chunkedd", "chunked\r\nTransfer-Encoding: foo", "foo\r\nTransfer-Encoding: chunked",
      "gzip\r\nTransfer-Encoding: identity", "", ",",
      "chunked,", ",chunked", ", ,chunked", "chunked,,", "\r\nTransfer-Encoding: chunked",
    ]

    @Test(arguments: unsound, [framed, text])
    func everythingElseIsRefused(_ value: String, _ body: String) async throws {
      let result = try await fetch("Transfer-Encoding: \(value)\r\n", body)
      #expect(result.bytes == nil)
      #expect(result.error?.code == .invalidResponse, "\(String(describing: result.error))")
    }

    @Test(arguments: ["chunked", "identity", "gzip"])
    func aLengthBesideATransferCodingIsRefusedOrOverridden(_ value: String) async throws {
      let body = value == "chunked" ? Self.framed : Self.text
      let result = try await fetch("Content-Length: 5\r\nTransfer-Encoding: \(value)\r\n", body)
      #expect(result.bytes == nil || result.bytes == Array(Self.text.utf8))
      #expect(result.bytes != nil || result.error?.code == .invalidResponse)
    }

    @Test func aRefusedAnswerLeavesNoConnectionOpen() async throws {
      try await withScriptedServer { request in
        request.path == "/sound"
          ? ScriptedReply(200, body: .text(Self.text))
          : ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n\(Self.framed)")])
      } _: { server in
        try await withRunning(AsyncHTTPClientSource()) { source in
          let error = await downloadError { try await source.fetch(server.url("/coded")) }
          #expect(error?.code == .invalidResponse)
          try await server.until { $0.openConnections == 0 }
          #expect(try await source.fetch(server.url("/sound")).bytes == Array(Self.text.utf8))
        }
      }
    }
  }
#endif
