import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

extension URLSessionTests {
  @Suite(.endsHangs)
  struct URLSessionSourceTests {
    private let content = ScriptedContent.pattern(size: 2 << 20)

    @Test func keepsTheContractOfSources() async throws {
      let (content, gate) = (content, ServerGate())
      try await withScriptedServer { request in
        switch request.path {
        case "/file": .file(content, etag: "\"v1\"", for: request)
        case "/stalling": .file(content, for: request).held(at: gate, after: 1000)
        default: .status(404)
        }
      } _: { server in
        try await SourceConformance(
          URLSessionSource(.ephemeral), url: server.url("/file"), content: content.allBytes,
          stallingURL: server.url("/stalling"), missingURL: server.url("/missing")
        ).run()
        gate.open()
      }
    }

    @Test(arguments: [
      ("http://example.org/", true), ("HTTPS://example.org", true), ("ftp://example.org/", false), ("http:///a", false),
      ("file:///a", false), ("/a", false),
    ])
    func accepts(_ text: String, _ expected: Bool) throws {
      #expect(URLSessionSource().accepts(try #require(URL(string: text))) == expected)
    }

    @Test func sendsTheFieldsOfADownload() async throws {
      let content = content
      try await withScriptedServer {
        .file(content, etag: "\"v1\"", for: $0)
      } _: { server in
        try await withSource { source in
          let request = SourceRequest(
            url: server.url("/a?b=c#d"), range: RequestedRange(from: 10, to: 20),
            validator: Validator(entityTag: EntityTag("v1")), headers: ["X-A": "1", "Accept-Encoding": "gzip"])
          let reply = try await source.open(request)
          #expect(reply.coverage == .range(10..<20, total: .known(content.size)))
          #expect(reply.length == .known(10))
          #expect(reply.finalURL == request.url)
          #expect(try await reply.bytes() == content.bytes(in: 10..<20))
        }
        let sent = try #require(server.requests.first)
        #expect(sent.target == "/a?b=c")
        #expect(sent.headers["Range"] == "bytes=10-19")
        #expect(sent.headers["If-Range"] == "\"v1\"")
        #expect(sent.headers.values("Accept-Encoding") == ["identity"])
        #expect(sent.headers["X-A"] == "1")
        #expect(sent.headers["User-Agent"] == "downpipe")
      }
    }

    @Test func doesNotKeepCookies() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Set-Cookie": "a=b; Path=/"], body: .text("x"))
      } _: {
        server in
        try await withSource(.default) { source in
          for _ in 0..<2 { _ = try await source.open(SourceRequest(url: server.url())).bytes() }
        }
        #expect(server.requests.count == 2)
        #expect(server.requests.allSatisfy { $0.headers["Cookie"] == nil })
      }
    }

    @Test func opensWithoutBeingStarted() async throws {
      let content = content
      try await withScriptedServer {
        .file(content, for: $0)
      } _: { server in
        let check = BodyCheck(content)
        try await URLSessionSource().open(SourceRequest(url: server.url())).body.forEachChunk(check.sink)
        #expect(check.end == content.size)
        // The reply is neither read nor discarded.
        _ = try await URLSessionSource().open(SourceRequest(url: server.url()))
        try await server.until { $0.openConnections == 0 }
        #expect(server.activity.connections == 2)
      }
    }

    @Test func decodedCodingsAreReported() async throws {
      let hello: [UInt8] = [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6, 0x10, 0x36, 5, 0, 0, 0,
      ]
      try await withScriptedServer { _ in
        ScriptedReply(
          200,
          [
            "Content-Encoding": "gzip",
            "Repr-Digest": "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
          ], body: .bytes(hello))
      } _: { server in
        try await withSource { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          #expect(reply.contentCoding == "decoded-gzip")
          #expect(reply.length == .unknown)
          #expect(reply.digests.isEmpty)
          #expect(try await reply.bytes() == Array("hello".utf8))
        }
      }
    }

    static let refusals: [(Int, HeaderFields)] = [
      (401, ["WWW-Authenticate": "Basic realm=\"a\""]), (401, ["WWW-Authenticate": "Digest realm=\"a\""]), (404, []),
      (204, []), (301, []), (302, []), (304, ["ETag": "\"a\""]), (305, ["Location": "/a"]), (503, []),
      (407, ["Proxy-Authenticate": "Basic realm=\"a\""]),
    ]

    @Test(arguments: refusals)
    func answersWithoutTheFile(_ status: Int, _ headers: HeaderFields) async throws {
      try await withScriptedServer { _ in
        status == 204 || status == 304
          ? ScriptedReply([.head(status, headers)]) : ScriptedReply(status, headers, body: .text("no"))
      } _: { server in
        try await withSource { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          #expect(reply.coverage == .none(status == 304 ? .notModified : .status(status)))
          try await reply.body.forEachChunk { _ in }
        }
      }
    }

    @Test func interimAnswersAreSkipped() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("hello")).after(.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"))
      } _: { server in
        try await withSource { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          #expect(reply.coverage == .whole)
          #expect(try await reply.bytes() == Array("hello".utf8))
        }
      }
    }

    @Test func manyAtOnce() async throws {
      try await withScriptedServer { request in
        .file(.pattern(size: 50_000, seed: UInt64(request.target.utf8.count)), for: request)
      } _: { server in
        try await withSource { source in
          try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
              let path = "/" + String(repeating: "a", count: number)
              group.addTask {
                let content = ScriptedContent.pattern(size: 50_000, seed: UInt64(path.utf8.count))
                let check = BodyCheck(content)
                try await source.open(SourceRequest(url: server.url(path))).body.forEachChunk(check.sink)
                return check.end == content.size
              }
            }
            for try await isRight in group { #expect(isRight) }
          }
        }
        // Connections are reused.
        #expect(server.activity.connections <= 10)
      }
    }
  }
}
