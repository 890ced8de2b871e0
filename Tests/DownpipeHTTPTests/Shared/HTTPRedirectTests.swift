#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct HTTPRedirectTests {
    @Test(arguments: TestedSource.allCases, [301, 302, 303, 307, 308])
    func followsWithRangeAndValidator(_ tested: TestedSource, _ status: Int) async throws {
      let content = ScriptedContent.pattern(size: 1000)
      try await withScriptedServer { request in
        request.path == "/new"
          ? .file(content, etag: "\"v1\"", for: request) : .redirect(to: "/new", status: status)
      } _: { server in
        try await withRunning(tested.source()) { source in
          let fetched = try await source.fetch(
            server.url("/old"), range: RequestedRange(from: 10), validator: Validator(entityTag: EntityTag("v1")))
          #expect(fetched.bytes == content.bytes(in: 10..<1000))
          #expect(fetched.reply.finalURL == server.url("/new"))
          #expect(server.requests.map { $0.headers["If-Range"] } == ["\"v1\"", "\"v1\""])
          #expect(server.activity.connections == 1)
        }
      }
    }

    @Test(
      arguments: TestedSource.allCases,
      [
        ("/x", "/x"), ("x", "/dir/x"), ("../x", "/x"), ("./x", "/dir/x"), ("?q=1", "/dir/start?q=1"), ("  /x  ", "/x"),
        ("/a b", "/a%20b"), ("/x#part", "/x"), ("/%C3%A5", "/%C3%A5"), ("/å", "/%C3%A5"), ("../../../x", "/x"),
      ])
    func resolves(_ tested: TestedSource, _ example: (location: String, target: String)) async throws {
      try await withScriptedServer { request in
        request.number == 1 && request.target == "/dir/start" ? .redirect(to: example.location) : ScriptedReply(200)
      } _: { server in
        _ = try await tested.source().fetch(server.url("/dir/start"))
        #expect(server.requests.last?.target == example.target)
      }
    }

    @Test(
      arguments: TestedSource.allCases,
      [
        ("file:///etc/passwd", DownloadError.Code.unsupportedURL), ("ftp://127.0.0.1/", .unsupportedURL),
        ("http+unix://%2Ftmp%2Fs/", .invalidResponse), ("javascript:1", .unsupportedURL), ("http://", .invalidResponse),
        ("http://127.0.0.1:99999/", .invalidResponse), ("//[::1/", .invalidResponse),
      ])
    func refuses(_ tested: TestedSource, _ example: (location: String, code: DownloadError.Code)) async throws {
      try await withScriptedServer { _ in
        .redirect(to: example.location)
      } _: { server in
        let error = await downloadError { try await tested.source().open(SourceRequest(url: server.url())) }
        #expect(error?.code == example.code)
        #expect(server.requests.count == 1)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func endsLoops(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .redirect(to: $0.path == "/a" ? "/b" : "/a")
      } _: { server in
        let source = tested.source { $0.maximumRedirects = 4 }
        let error = await downloadError { try await source.fetch(server.url("/a")) }
        #expect(error?.code == .tooManyRedirects)
        #expect(server.requests.count == 5)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func keepsTheRedirectWhenItMayNotFollow(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        .redirect(to: "/b")
      } _: { server in
        let fetched = try await tested.source { $0.maximumRedirects = 0 }.fetch(server.url("/a"))
        #expect(fetched.reply.coverage == .none(.status(302)))
      }
    }

    @Test(arguments: TestedSource.allCases)
    func redirectWithoutLocationIsTheAnswer(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(302, body: .text("nowhere"))
      } _: { server in
        let reply = try await tested.source().fetch(server.url()).reply
        #expect(reply.coverage == .none(.status(302)))
      }
    }

    @Test(arguments: TestedSource.allCases)
    func severalLocationsAreRefused(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.head(302, ["Location": "/a", "location": "/b", "Content-Length": "0"])])
      } _: { server in
        let error = await downloadError { try await tested.source().fetch(server.url()) }
        #expect(error?.code == .invalidResponse)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func credentialsStayWithTheirOrigin(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        let elsewhere = other.url("/there").absoluteString
        try await withScriptedServer { request in
          .redirect(to: request.path == "/start" ? "/here" : elsewhere)
        } _: { server in
          _ = try await tested.source().fetch(
            server.url("/start"), headers: ["Authorization": "Bearer x", "Cookie": "a=b", "X-Mine": "1"])
          #expect(server.requests.map { $0.headers["Authorization"] } == ["Bearer x", "Bearer x"])
          let request = try #require(other.requests.first)
          #expect(request.headers["Authorization"] == nil)
          #expect(request.headers["Cookie"] == nil)
          #expect(request.headers["X-Mine"] == nil)
          #expect(request.headers["User-Agent"] == "downpipe")
          #expect(request.headers["Host"] == "127.0.0.1:\(other.port)")
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func boundFieldsComeBackToTheirOrigin(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        .redirect(to: "http://127.0.0.1:\(request.target.dropFirst("/from?".count))/back")
      } _: { other in
        try await withScriptedServer { request in
          let port = request.headers["Host"]?.split(separator: ":").last ?? ""
          return request.path == "/back" ? ScriptedReply(200) : .redirect(to: "\(other.url("/from"))?\(port)")
        } _: { server in
          let start = try url("http://me:secret@127.0.0.1:\(server.port)/start")
          let fetched = try await tested.source().fetch(start, headers: ["X-Mine": "1"])
          #expect(other.requests.map { $0.headers["Authorization"] ?? $0.headers["X-Mine"] } == [nil])
          #expect(server.requests.map { $0.headers["X-Mine"] } == ["1", "1"])
          #expect(server.requests.allSatisfy { $0.headers["Authorization"]?.hasPrefix("Basic ") ?? false })
          #expect(fetched.reply.redirects.map(\.path) == ["/from", "/back"])
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func bodiesOfRedirectsAreReadWhenShortAndCutWhenLong(_ tested: TestedSource) async throws {
      let endless = ScriptedContent.pattern(size: 1 << 40)
      try await withScriptedServer { request in
        switch request.path {
        case "/short": ScriptedReply(302, ["Location": "/end"], body: .pattern(size: 2000))
        case "/long": ScriptedReply(302, ["Location": "/end"], body: endless)
        default: ScriptedReply(200, body: .text("ok"))
        }
      } _: { server in
        try await withRunning(tested.source()) { source in
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
