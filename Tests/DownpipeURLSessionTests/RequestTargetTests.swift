import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

extension URLSessionTests {
  @Suite(.endsHangs)
  struct RequestTargetTests {
    private static let targets = [
      ("", "/"), ("/caf%E9.txt", "/caf%E9.txt"), ("/[1]%20x", "/%5B1%5D%20x"), ("/é%20x", "/%C3%A9%20x"),
      ("/?q=a b%20c", "/?q=a%20b%20c"), ("?q", "/?q"), ("/a%2Fb%2f%41", "/a%2Fb%2f%41"), ("//a//b", "//a//b"),
      ("/a?b#c", "/a?b"), ("/?", "/?"), ("/a;b,c'd(e)", "/a;b,c'd(e)"),
    ]

    @Test func asWritten() async throws {
      try await withScriptedServer {
        .file(.text("hello"), for: $0)
      } _: { server in
        try await withSource { source in
          let host = server.url("/").absoluteString.dropLast()
          for (text, _) in Self.targets {
            let reply = try await source.open(SourceRequest(url: try DownloadRequest("\(host)\(text)").url))
            #expect(try await reply.bytes() == Array("hello".utf8))
          }
        }
        #expect(server.requests.map(\.target) == Self.targets.map(\.1))
      }
    }

    @Test(arguments: [
      (Array("/caf\u{E9}".utf8), "/caf%C3%A9"),
      (Array("/[1]%20x?a b%20%zz".utf8), "/%5B1%5D%20x?a%20b%20%25zz"),
      (Array("/%2e%2E/%E9".utf8), "/%E9"),
    ])
    func location(_ location: [UInt8], _ target: String) async throws {
      try await withScriptedServer { request in
        request.path == "/first"
          ? ScriptedReply([
            .send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "), .send(location), .send("\r\n\r\n"),
          ]) : .file(.text("hello"), for: request)
      } _: { server in
        try await withSource { source in
          let reply = try await source.open(SourceRequest(url: server.url("/first")))
          #expect(try await reply.bytes() == Array("hello".utf8))
        }
        #expect(server.requests.map(\.target) == ["/first", target])
      }
    }

    @Test func userInformation() async throws {
      try await withScriptedServer {
        .file(.text("hello"), for: $0)
      } _: { server in
        try await withSource { source in
          let text = server.url("/x").absoluteString.replacing("://", with: "://jo%40e:p%3Aw@")
          let reply = try await source.open(SourceRequest(url: try DownloadRequest(text).url))
          #expect(try await reply.bytes() == Array("hello".utf8))
        }
        let credentials = Data("jo@e:p:w".utf8).base64EncodedString()
        #expect(server.requests.map { $0.headers["Authorization"] } == ["Basic \(credentials)"])
      }
    }
  }
}
