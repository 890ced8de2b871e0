#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Transfer codings over real sockets: libcurl and NIO's parser read the field before the core does.
  @Suite(.endsHangs)
  struct HTTPTransferCodingTests {
    private static let text = "hello, world"
    private static let framed = "c\r\nhello, world\r\n0\r\n\r\n"

    private func fetch(
      _ tested: TestedSource, _ fields: String, _ body: String
    ) async throws -> (bytes: [UInt8]?, error: DownloadError?) {
      try await result(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)", from: tested.source())
    }

    @Test(
      arguments: TestedSource.allCases,
      [
        "chunked", "Chunked", "CHUNKED", "chunked ", "\tchunked", "identity, chunked", "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked", "identity\r\nTransfer-Encoding: chunked",
      ])
    func chunkedIsDecoded(_ tested: TestedSource, _ value: String) async throws {
      let result = try await fetch(tested, "Transfer-Encoding: \(value)\r\n", Self.framed)
      #expect(result.bytes == Array(Self.text.utf8), "\(String(describing: result.error))")
    }

    @Test(arguments: TestedSource.allCases)
    func identityIsTheBodyItself(_ tested: TestedSource) async throws {
      let result = try await fetch(tested, "Transfer-Encoding: identity\r\n", Self.text)
      #expect(result.bytes == Array(Self.text.utf8), "\(String(describing: result.error))")
    }

    static let unsound = [
      "chunked, another", "another, chunked", "foo", "gzip", "deflate", "gzip, chunked", "chunked, gzip",
      "chunked, identity", "chunked;q=1", "chunked ; a=b", "\"chunked\"",
      "chunkedd", "chunked\r\nTransfer-Encoding: foo", "foo\r\nTransfer-Encoding: chunked",
      "gzip\r\nTransfer-Encoding: identity", "", ",",
      "chunked,", ",chunked", ", ,chunked", "chunked,,", "\r\nTransfer-Encoding: chunked",
    ]

    @Test(arguments: TestedSource.allCases, unsound.flatMap { [($0, framed), ($0, text)] })
    func everythingElseIsRefused(_ tested: TestedSource, _ example: (value: String, body: String)) async throws {
      let result = try await fetch(tested, "Transfer-Encoding: \(example.value)\r\n", example.body)
      #expect(result.bytes == nil)
      #expect(result.error?.code == .invalidResponse, "\(String(describing: result.error))")
    }

    @Test(arguments: TestedSource.allCases, ["chunked", "identity", "gzip"])
    func aLengthBesideATransferCodingIsRefusedOrOverridden(_ tested: TestedSource, _ value: String) async throws {
      let body = value == "chunked" ? Self.framed : Self.text
      let result = try await fetch(tested, "Content-Length: 5\r\nTransfer-Encoding: \(value)\r\n", body)
      #expect(result.bytes == nil || result.bytes == Array(Self.text.utf8))
      #expect(result.bytes != nil || result.error?.code == .invalidResponse)
    }

    @Test(arguments: TestedSource.allCases)
    func aRefusedAnswerLeavesNoConnectionOpen(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        request.path == "/sound"
          ? ScriptedReply(200, body: .text(Self.text))
          : ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n\(Self.framed)")])
      } _: { server in
        try await withRunning(tested.source()) { source in
          let error = await downloadError { try await source.fetch(server.url("/coded")) }
          #expect(error?.code == .invalidResponse)
          try await server.until { $0.openConnections == 0 }
          #expect(try await source.fetch(server.url("/sound")).bytes == Array(Self.text.utf8))
        }
      }
    }

    /// Decoders take a stream that ends too early, so only chunks tell that it is whole.
    @Test(arguments: TestedSource.allCases, ["gzip", "x-gzip", "deflate", "gzip, deflate"])
    func aCodingWithoutChunksIsRefused(_ tested: TestedSource, _ value: String) async throws {
      let result = try await fetch(tested, "Transfer-Encoding: \(value)\r\n", Self.text)
      #expect(result.error?.code == .invalidResponse)
    }

    /// A line of the head that looks like a status line does not hide the fields before it.
    @Test(arguments: TestedSource.allCases)
    func differentLengthsAreSeenBehindASecondStatusLine(_ tested: TestedSource) async throws {
      let result = try await fetch(tested, "Content-Length: 5\r\nContent-Length: 7\r\nHTTP/x: y\r\n", "hello w")
      #expect(result.bytes == nil)
    }

    @Test(arguments: TestedSource.allCases, ["Transfer-Encoding : chunked", "transfer-encoding\t: chunked"])
    func aBlankBeforeTheColonIsRefused(_ tested: TestedSource, _ field: String) async throws {
      let result = try await fetch(tested, "\(field)\r\n", Self.framed)
      #expect(result.error?.code == .invalidResponse)
    }
  }
#endif
