#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import Testing

  @Suite(.timeLimit(.minutes(5)))
  struct HTTPRedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308])
    func followsWithRangeAndValidator(_ status: Int) async throws {
      let content = ScriptedContent.pattern(size: 1000)
      try await withScriptedServer { request in
        request.path == "/new"
          ? .file(content, etag: "\"v1\"", for: request) : .redirect(to: "/new", status: status)
      } _: { server in
        try await withRunning { source in
          let fetched = try await source.fetch(
            server.url("/old"), range: RequestedRange(from: 10), validator: Validator(entityTag: EntityTag("v1")))
          #expect(fetched.bytes == content.bytes(in: 10..<1000))
          #expect(fetched.reply.finalURL == server.url("/new"))
          #expect(server.requests.map { $0.headers["If-Range"] } == ["\"v1\"", "\"v1\""])
          #expect(server.activity.connections == 1)
        }
      }
    }

    @Test(arguments: [
      ("/x", "/x"), ("x", "/dir/x"), ("../x", "/x"), ("./x", "/dir/x"), ("?q=1", "/dir/start?q=1"), ("  /x  ", "/x"),
      ("/a b", "/a%20b"), ("/x#part", "/x"), ("/%C3%A5", "/%C3%A5"), ("/å", "/%C3%A5"), ("../../../x", "/x"),
    ])
    func resolves(_ location: String, _ target: String) async throws {
      try await withScriptedServer { request in
        request.number == 1 && request.target == "/dir/start" ? .redirect(to: location) : ScriptedReply(200)
      } _: { server in
        _ = try await HTTPSource().fetch(server.url("/dir/start"))
        #expect(server.requests.last?.target == target)
      }
    }

    @Test(arguments: [
      ("file:///etc/passwd", DownloadError.Code.unsupportedURL), ("ftp://127.0.0.1/", .unsupportedURL),
      ("http+unix://%2Ftmp%2Fs/", .invalidResponse), ("javascript:1", .unsupportedURL), ("http://", .invalidResponse),
      ("http://127.0.0.1:99999/", .invalidResponse), ("//[::1/", .invalidResponse),
    ])
    func refuses(_ location: String, _ code: DownloadError.Code) async throws {
      try await withScriptedServer { _ in
        .redirect(to: location)
      } _: { server in
        let error = await downloadError { try await HTTPSource().open(SourceRequest(url: server.url())) }
        #expect(error?.code == code)
        #expect(server.requests.count == 1)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test func endsLoops() async throws {
      try await withScriptedServer {
        .redirect(to: $0.path == "/a" ? "/b" : "/a")
      } _: { server in
        let error = await downloadError { try await HTTPSource { $0.maximumRedirects = 4 }.fetch(server.url("/a")) }
        #expect(error?.code == .tooManyRedirects)
        #expect(server.requests.count == 5)
      }
    }

    @Test func keepsTheRedirectWhenItMayNotFollow() async throws {
      try await withScriptedServer { _ in
        .redirect(to: "/b")
      } _: { server in
        let fetched = try await HTTPSource { $0.maximumRedirects = 0 }.fetch(server.url("/a"))
        #expect(fetched.reply.coverage == .none(.status(302)))
      }
    }

    @Test func redirectWithoutLocationIsTheAnswer() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(302, body: .text("nowhere"))
      } _: { server in
        let reply = try await HTTPSource().fetch(server.url()).reply
        #expect(reply.coverage == .none(.status(302)))
      }
    }

    @Test func severalLocationsAreRefused() async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.head(302, ["Location": "/a", "location": "/b", "Content-Length": "0"])])
      } _: { server in
        let error = await downloadError { try await HTTPSource().fetch(server.url()) }
        #expect(error?.code == .invalidResponse)
      }
    }

    @Test func credentialsStayWithTheirOrigin() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        let elsewhere = other.url("/there").absoluteString
        try await withScriptedServer { request in
          .redirect(to: request.path == "/start" ? "/here" : elsewhere)
        } _: { server in
          _ = try await HTTPSource().fetch(
            server.url("/start"), headers: ["Authorization": "Bearer x", "Cookie": "a=b", "X-Mine": "1"])
          #expect(server.requests.map { $0.headers["Authorization"] } == ["Bearer x", "Bearer x"])
          let request = try #require(other.requests.first)
          #expect(request.headers["Authorization"] == nil)
          #expect(request.headers["Cookie"] == nil)
          #expect(request.headers["X-Mine"] == nil)
          #expect(request.headers["Host"] == "127.0.0.1:\(other.port)")
        }
      }
    }

    @Test func bodiesOfRedirectsAreReadWhenShortAndCutWhenLong() async throws {
      let endless = ScriptedContent.pattern(size: 1 << 40)
      try await withScriptedServer { request in
        switch request.path {
        case "/short": ScriptedReply(302, ["Location": "/end"], body: .pattern(size: 2000))
        case "/long": ScriptedReply(302, ["Location": "/end"], body: endless)
        default: ScriptedReply(200, body: .text("ok"))
        }
      } _: { server in
        try await withRunning { source in
          for path in ["/short", "/long"] {
            let bytes = try await source.fetch(server.url(path)).bytes
            #expect(bytes == Array("ok".utf8))
          }
        }
        try await server.until { $0.openConnections == 0 }
        #expect(server.activity.bytesSent < 64 << 20)
      }
    }
  }
#endif
