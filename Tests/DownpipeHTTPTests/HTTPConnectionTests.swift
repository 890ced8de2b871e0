#if LIBCURL && AsyncHTTPClient
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import Testing

  /// TLS and proxies.
  @Suite(.timeLimit(.minutes(5)))
  struct HTTPConnectionTests {
    static let hello = Array("hello".utf8)
    static let roots = HTTPSource.TLS.TrustRoots.only(.text(TestCertificate.certificate))

    // MARK: TLS

    @Test(arguments: [roots, .systemAnd(.text(TestCertificate.certificate))])
    func trustsItsRoots(_ roots: HTTPSource.TLS.TrustRoots) async throws {
      try await withTunnel(.tls()) { server in
        let source = HTTPSource { $0.tls.trustRoots = roots }
        let fetched = try await source.fetch(url("https://localhost:\(server.port)/"))
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test func readsTrustRootsFromAFile() async throws {
      let file = FileManager.default.temporaryDirectory.appending(path: "roots-\(UUID()).pem")
      try Data(TestCertificate.certificate.utf8).write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      try await withTunnel(.tls()) { server in
        let source = HTTPSource { $0.tls.trustRoots = .only(.file(file.path())) }
        let fetched = try await source.fetch(url("https://localhost:\(server.port)/"))
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test func refusesAnUnknownAuthority() async throws {
      try await withTunnel(.tls()) { server in
        let error = await downloadError { try await HTTPSource().fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .tls)
        #expect(error?.message.contains("not trusted") ?? false)
        #expect(server.lines.isEmpty)
      }
    }

    @Test func refusesACertificateForAnotherHost() async throws {
      try await withTunnel(.tls()) { server in
        let source = HTTPSource { $0.tls.trustRoots = Self.roots }
        let error = await downloadError { try await source.fetch(url("https://127.0.0.1:\(server.port)/")) }
        #expect(error?.code == .tls)
        #expect(server.lines.isEmpty)
      }
    }

    @Test func showsItsCertificate() async throws {
      try await withTunnel(.tls(wantsCertificate: true)) { server in
        var source = HTTPSource.Configuration()
        source.tls.trustRoots = Self.roots
        let target = try url("https://localhost:\(server.port)/")
        let without = await downloadError { try await HTTPSource(source).fetch(target) }
        #expect(without != nil)
        source.tls.clientCertificate = .init(
          chain: .text(TestCertificate.certificate), privateKey: .text(TestCertificate.privateKey))
        let fetched = try await HTTPSource(source).fetch(target)
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test func refusesCertificatesThatCannotBeRead() async throws {
      for pem in [HTTPSource.TLS.PEM.file("/no/such/file"), .text("no certificate"), .text("")] {
        let error = await downloadError {
          try await HTTPSource { $0.tls.trustRoots = .only(pem) }.start(in: SourceContext())
        }
        #expect(error?.code == .tls)
      }
    }

    @Test func plainTextIsNotTLS() async throws {
      try await withTunnel(.talkative) { server in
        let error = await downloadError { try await HTTPSource().fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .tls)
      }
    }

    @Test func aRedirectToPlainTextIsRefused() async throws {
      try await withTunnel(.tls()) { server in
        let source = HTTPSource { $0.tls.trustRoots = Self.roots }
        let error = await downloadError { try await source.fetch(url("https://localhost:\(server.port)/insecure")) }
        #expect(error?.code == .insecureRedirect)
      }
    }

    @Test func aRedirectToTLSIsFollowed() async throws {
      try await withTunnel(.tls()) { secure in
        let target = "https://localhost:\(secure.port)/"
        try await withScriptedServer { _ in
          .redirect(to: target)
        } _: { server in
          let fetched = try await HTTPSource { $0.tls.trustRoots = Self.roots }.fetch(server.url())
          #expect(fetched.bytes == Self.hello)
          #expect(fetched.reply.finalURL?.absoluteString == target)
        }
      }
    }

    @Test func silenceDuringTheHandshakeEnds() async throws {
      try await withTunnel(.silent) { server in
        let source = HTTPSource { $0.connectTimeLimit = .milliseconds(100) }
        let error = await downloadError { try await source.fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .timedOut)
      }
    }

    // MARK: Proxies

    @Test func asksAnHTTPProxyInAbsoluteForm() async throws {
      try await withScriptedServer { request in
        request.target == "http://example.org/a?b=c"
          ? .redirect(to: "http://example.com:8080/d") : ScriptedReply(200, body: .text("hello"))
      } _: { proxy in
        let source = HTTPSource {
          $0.proxy = .proxy(
            .init(.http, host: "127.0.0.1", port: proxy.port, credentials: .init(user: "me", password: "secret")))
        }
        let fetched = try await source.fetch(url("http://example.org/a?b=c"))
        #expect(fetched.bytes == Self.hello)
        #expect(fetched.reply.finalURL?.absoluteString == "http://example.com:8080/d")
        #expect(proxy.requests.map(\.target) == ["http://example.org/a?b=c", "http://example.com:8080/d"])
        #expect(proxy.requests.map { $0.headers["Host"] } == ["example.org", "example.com:8080"])
        let basic = "Basic " + Data("me:secret".utf8).base64EncodedString()
        #expect(proxy.requests.map { $0.headers["Proxy-Authorization"] } == [basic, basic])
        #expect(proxy.requests.map { $0.headers["Authorization"] } == [nil, nil])
      }
    }

    @Test func tunnelsTLSThroughAnHTTPProxy() async throws {
      try await withTunnel(.connect(authorization: "Basic bWU6c2VjcmV0")) { proxy in
        var configuration = HTTPSource.Configuration()
        configuration.tls.trustRoots = Self.roots
        configuration.proxy = try .proxy(.init("http://me:secret@127.0.0.1:\(proxy.port)"))
        let fetched = try await HTTPSource(configuration).fetch(url("https://localhost:8443/x"))
        #expect(fetched.bytes == Self.hello)
        #expect(proxy.lines == ["CONNECT localhost:8443 HTTP/1.1", "GET /x HTTP/1.1"])

        configuration.proxy = .proxy(.init(.http, host: "127.0.0.1", port: proxy.port))
        let error = await downloadError { try await HTTPSource(configuration).fetch(url("https://localhost:8443/x")) }
        #expect(error?.code == .httpStatus)
        #expect(error?.httpStatus == 407)
      }
    }

    @Test func asksASOCKSProxyForTheName() async throws {
      try await withTunnel(.socks5) { proxy in
        let source = HTTPSource { $0.proxy = .proxy(.init(.socks5h, host: "127.0.0.1", port: proxy.port)) }
        let fetched = try await source.fetch(url("http://no-such-host.invalid/x"))
        #expect(fetched.bytes == Self.hello)
        #expect(proxy.lines == ["no-such-host.invalid", "GET /x HTTP/1.1"])
      }
    }

    @Test func aServerThatIsNoProxyCausesAnError() async throws {
      try await withScriptedServer { _ in
        .garbage
      } _: { server in
        for kind in HTTPSource.Proxy.Kind.allCases {
          let source = HTTPSource {
            $0.proxy = .proxy(.init(kind, host: "127.0.0.1", port: server.port))
            $0.connectTimeLimit = .milliseconds(500)
          }
          for scheme in ["http", "https"] {
            let error = await downloadError { try await source.fetch(url("\(scheme)://example.org/")) }
            #expect(error != nil)
          }
        }
      }
    }

    @Test(arguments: [
      ("https://proxy", "https://proxy:443"), ("http://proxy:3128", "http://proxy:3128"),
      ("proxy:8080", "http://proxy:8080"),
      ("http://proxy", "http://proxy:80"),
      ("HTTP://me:secret@proxy:1", "http://proxy:1"), ("socks5://proxy", "socks5://proxy:1080"),
      ("socks4a://me@proxy", "socks4a://proxy:1080"), ("socks5h://[::1]:9050", "socks5h://[::1]:9050"),
    ])
    func readsProxyURLs(_ text: String, _ description: String) throws {
      #expect(try HTTPSource.Proxy(text).description == description)
    }

    @Test(arguments: [
      "", "http://", "ftp://proxy:1", "http://proxy:99999", "http://a b:1",
    ])
    func refusesProxyURLs(_ text: String) {
      #expect(throws: DownloadError.self) { try HTTPSource.Proxy(text) }
    }
  }
#endif
