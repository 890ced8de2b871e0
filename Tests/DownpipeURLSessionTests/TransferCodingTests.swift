import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

extension URLSessionTests {
  /// Transfer codings over real sockets. Duplicate fields are not tested, because Foundation on Linux ends the process
  /// for them (see ``URLSessionSource``).
  @Suite(.endsHangs)
  struct TransferCodingTests {
    private static let text = "hello, world"
    private static let framed = "c\r\nhello, world\r\n0\r\n\r\n"

    private func fetch(_ fields: String, _ body: String) async throws -> (bytes: [UInt8]?, error: DownloadError?) {
      try await result(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)", from: URLSessionSource(.ephemeral))
    }

    @Test(arguments: [
      "chunked", "Chunked", "chunked ", "\tchunked", "identity", "identity, chunked", "chunked, chunked",
    ])
    func supportedCodingsAreDecoded(_ value: String) async throws {
      let body = value == "identity" ? Self.text : Self.framed
      let result = try await fetch("Transfer-Encoding: \(value)\r\n", body)
      #expect(result.bytes == Array(Self.text.utf8), "\(String(describing: result.error))")
    }

    static let unsound = [
      "chunked, another", "another, chunked", "foo", "gzip", "deflate", "gzip, chunked", "chunked, gzip",
      "chunked, identity", "chunked;q=1", "\"chunked\"", "chunkedd",
      "chunked,", ",chunked", "", ",",
    ]

    @Test(arguments: unsound, [framed, text])
    func everythingElseIsRefused(_ value: String, _ body: String) async throws {
      let result = try await fetch("Transfer-Encoding: \(value)\r\n", body)
      #expect(result.bytes == nil)
      #expect(result.error?.code == .invalidResponse, "\(String(describing: result.error))")
    }
  }
}
