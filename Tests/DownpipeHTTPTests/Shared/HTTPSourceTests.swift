#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct HTTPSourceTests {
    static let content = ScriptedContent.pattern(size: 300_000, seed: 5)

    @Test(arguments: TestedSource.allCases)
    func fetchesAWholeFile(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, etag: "\"v1\"", name: "film.mkv", mediaType: "video/x-matroska", for: $0)
      } _: { server in
        let fetched = try await tested.source().fetch(server.url("/a?b=c"))
        #expect(fetched.bytes == Self.content.allBytes)
        #expect(fetched.reply.coverage == .whole)
        #expect(fetched.reply.length == .known(300_000))
        #expect(fetched.reply.validator?.entityTag == EntityTag("v1"))
        #expect(fetched.reply.suggestedName == "film.mkv")
        #expect(fetched.reply.mediaType == "video/x-matroska")
        #expect(fetched.reply.acceptsRanges == true)
        #expect(fetched.reply.finalURL == server.url("/a?b=c"))
        let request = try #require(server.requests.first)
        #expect(request.method == "GET")
        #expect(request.target == "/a?b=c")
        #expect(request.headers["Host"] == "127.0.0.1:\(server.port)")
        #expect(request.headers["Accept-Encoding"] == "identity")
        #expect(request.headers["User-Agent"] == "downpipe")
        #expect(request.headers["Range"] == nil)
      }
    }

    @Test("duplicates are named by the reply and by redirects", arguments: TestedSource.allCases)
    func namesDuplicates(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        request.path == "/a"
          ? ScriptedReply(302, ["Location": "/b", "Link": "<http://c.test/>; rel=duplicate"])
          : .file(Self.content, for: request).setting(["Link": "</b>; rel=duplicate, </d>; rel=\"duplicate\""])
      } _: { server in
        let fetched = try await tested.source().fetch(server.url("/a"))
        #expect(fetched.reply.redirects == [server.url("/b")])
        #expect(fetched.reply.duplicates == [server.url("/d"), URL(string: "http://c.test/")])
      }
    }

    @Test("a place that a server has named gets no credentials", arguments: TestedSource.allCases)
    func namedByAServer(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        request.path == "/away" ? .redirect(to: "/file") : ScriptedReply(200)
      } _: { server in
        let text = "\(server.url("/away"))".replacingOccurrences(of: "http://", with: "http://me:secret@")
        let url = try #require(URL(string: text))
        let headers: HeaderFields = [
          HeaderField("Cookie", "secret"), HeaderField("X-Key", "secret"), HeaderField("Accept", "video/*"),
          HeaderField("Referer", "https://a.test/", scope: .everywhere),
          HeaderField("X-Other", "secret", scope: .origin(try #require(Origin(server.url())))),
        ]
        for isNamedByServer in [false, true] {
          let before = server.requests.count
          try await tested.source().open(
            SourceRequest(url: url, headers: headers, isNamedByServer: isNamedByServer)
          ).body.discard()
          let requests = server.requests.dropFirst(before)
          #expect(requests.count == 2)
          for request in requests {
            for field in ["Authorization", "Cookie", "X-Key", "X-Other"] {
              #expect((request.headers[field] == nil) == isNamedByServer, "\(field)")
            }
            #expect(request.headers["Accept"] == "video/*" && request.headers["Referer"] == "https://a.test/")
          }
        }
        let field = HeaderFields([HeaderField("Authorization", "Bearer secret")])
        let before = server.requests.count
        try await tested.source().open(SourceRequest(url: server.url("/x"), headers: field, isNamedByServer: true))
          .body.discard()
        #expect(server.requests.dropFirst(before).map { $0.headers["Authorization"] } == [nil])
      }
    }

    @Test(arguments: TestedSource.allCases)
    func asksForARangeWithItsValidator(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, etag: "\"v1\"", for: $0)
      } _: { server in
        let fetched = try await tested.source().fetch(
          server.url(), range: RequestedRange(from: 1000, to: 2000), validator: Validator(entityTag: EntityTag("v1")))
        #expect(fetched.reply.coverage == .range(1000..<2000, total: .known(300_000)))
        #expect(fetched.bytes == Self.content.bytes(in: 1000..<2000))
        #expect(server.requests.first?.headers["Range"] == "bytes=1000-1999")
        #expect(server.requests.first?.headers["If-Range"] == "\"v1\"")

        let changed = try await tested.source().fetch(
          server.url(), range: RequestedRange(from: 1000), validator: Validator(entityTag: EntityTag("v0")))
        #expect(changed.reply.coverage == .whole)
        #expect(changed.bytes.count == 300_000)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func reportsARangeThatCannotBeSatisfied(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, for: $0)
      } _: { server in
        let fetched = try await tested.source().fetch(server.url(), range: RequestedRange(from: 300_000))
        #expect(fetched.reply.coverage == .none(.rangeNotSatisfiable(total: .known(300_000))))
        #expect(fetched.bytes.isEmpty)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func reportsStatusAndRetryAfter(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        .status(503, retryAfter: .seconds(7))
      } _: { server in
        let reply = try await tested.source().open(SourceRequest(url: server.url()))
        #expect(reply.coverage == .none(.status(503)))
        #expect(reply.retryAfter == .seconds(7))
        reply.body.discard()
      }
    }

    @Test(arguments: TestedSource.allCases)
    func fetchesAnEmptyFileAndChunkedBodies(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        request.path == "/chunked"
          ? .chunked([[1, 2, 3], Array(repeating: 4, count: 70_000)]) : ScriptedReply(200)
      } _: { server in
        let empty = try await tested.source().fetch(server.url("/empty"))
        #expect(empty.bytes.isEmpty)
        let chunked = try await tested.source().fetch(server.url("/chunked"))
        #expect(chunked.bytes == [1, 2, 3] + Array(repeating: 4, count: 70_000))
        #expect(chunked.reply.length == .unknown)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func readsToTheEndOfTheConnectionWithoutALength(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply([.head(200, ["Connection": "close"]), .send("to the end"), .close])
      } _: { server in
        let fetched = try await tested.source().fetch(server.url())
        #expect(fetched.bytes == Array("to the end".utf8))
        #expect(fetched.reply.length == .unknown)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func skipsInformationalAnswers(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(
          [.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")]
            + ScriptedReply(200, body: .text("ok")).steps)
      } _: { server in
        let bytes = try await tested.source().fetch(server.url()).bytes
        #expect(bytes == Array("ok".utf8))
      }
    }

    @Test(arguments: TestedSource.allCases)
    func usesConnectionsAgainWhileItRuns(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, for: $0)
      } _: { server in
        try await withRunning(tested.source()) { source in
          for _ in 0..<8 {
            let bytes = try await source.fetch(server.url()).bytes
            #expect(bytes == Self.content.allBytes)
          }
        }
        #expect(server.activity.connections == 1)
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func closesTheConnectionOfASingleFetch(_ tested: TestedSource) async throws {
      try await withScriptedServer {
        .file(Self.content, for: $0)
      } _: { server in
        _ = try await tested.source().fetch(server.url())
        try await server.until { $0.openConnections == 0 }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func sendsHeadersAndCredentialsOfTheURL(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let url = try #require(URL(string: "http://me:se%20cret@127.0.0.1:\(server.port)/"))
        let source = tested.source { $0.userAgent = "tests/1" }
        _ = try await source.fetch(url, headers: ["X-Mine": "1"])
        let request = try #require(server.requests.first)
        #expect(request.headers["Authorization"] == "Basic " + Data("me:se cret".utf8).base64EncodedString())
        #expect(request.headers["X-Mine"] == "1")
        #expect(request.headers["User-Agent"] == "tests/1")
        _ = try await source.fetch(url, headers: ["Authorization": "Bearer x", "User-Agent": "other"])
        #expect(server.requests.last?.headers.values("Authorization") == ["Bearer x"])
        #expect(server.requests.last?.headers["User-Agent"] == "other")
      }
    }

    @Test(
      arguments: TestedSource.allCases,
      [
        ("ftp://example.org/a", DownloadError.Code.unsupportedURL), ("http:///a", .invalidRequest),
        ("http://127.0.0.1:0/a", .invalidRequest), ("http://127.0.0.1:65536/a", .invalidRequest),
        ("http://exa%0d%0ample.org/a", .invalidRequest), ("unix:///tmp/socket", .unsupportedURL),
        ("http+unix://%2Ftmp%2Fsocket/a", .unsupportedURL), ("https:a", .invalidRequest),
        ("http://\(String(repeating: "a", count: 254))/", .invalidRequest),
      ])
    func refusesURLs(_ tested: TestedSource, _ example: (text: String, code: DownloadError.Code)) async throws {
      guard let url = URL(string: example.text) else { return }
      let error = await downloadError { try await tested.source().open(SourceRequest(url: url)) }
      #expect(error?.code == example.code)
    }

    @Test(arguments: TestedSource.allCases)
    func acceptsHTTPOnly(_ tested: TestedSource) throws {
      let source = tested.source()
      let accepted = try ["http://a/", "HTTPS://a/", "ftp://a/", "file:///a", "a/b"].filter {
        source.accepts(try #require(URL(string: $0)))
      }
      #expect(accepted == ["http://a/", "HTTPS://a/"])
    }

    @Test(arguments: TestedSource.allCases)
    func refusesHeadersThatWouldSplitTheRequest(_ tested: TestedSource) async throws {
      let url = try #require(URL(string: "http://127.0.0.1:9/"))
      let error = await downloadError {
        try await tested.source().open(SourceRequest(url: url, headers: ["X": "a\r\nHost: evil"]))
      }
      #expect(error?.code == .invalidRequest)
    }
  }
#endif
