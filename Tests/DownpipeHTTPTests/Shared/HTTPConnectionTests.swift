#if AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// TLS and proxies. The server needs the trait `AsyncHTTPClient`.
  @Suite(.endsHangs)
  struct HTTPConnectionTests {
    private static let hello = Array("hello".utf8)

    // MARK: TLS

    @Test(arguments: TestedSource.allCases, [true, false])
    func trustsItsRoots(_ tested: TestedSource, _ trustsSystem: Bool) async throws {
      try await withTunnel(.tls()) { server in
        let certificate = TestCertificate.certificate
        let source = tested.source {
          if trustsSystem { $0.trustSystem(and: certificate) } else { $0.trust(certificate) }
        }
        let fetched = try await source.fetch(url("https://localhost:\(server.port)/"))
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func readsTrustRootsFromAFile(_ tested: TestedSource) async throws {
      let file = FileManager.default.temporaryDirectory.appending(path: "roots-\(UUID()).pem")
      try Data(TestCertificate.certificate.utf8).write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      try await withTunnel(.tls()) { server in
        let source = tested.source { $0.trust(file: file.path()) }
        let fetched = try await source.fetch(url("https://localhost:\(server.port)/"))
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func refusesAnUnknownAuthority(_ tested: TestedSource) async throws {
      try await withTunnel(.tls()) { server in
        let error = await downloadError { try await tested.source().fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .tls)
        #expect(error?.message.contains("not trusted") ?? false)
        #expect(server.lines.isEmpty)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func refusesACertificateForAnotherHost(_ tested: TestedSource) async throws {
      try await withTunnel(.tls()) { server in
        let source = tested.trustingSource
        let error = await downloadError { try await source.fetch(url("https://127.0.0.1:\(server.port)/")) }
        #expect(error?.code == .tls)
        #expect(server.lines.isEmpty)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func showsItsCertificate(_ tested: TestedSource) async throws {
      try await withTunnel(.tls(wantsCertificate: true)) { server in
        let target = try url("https://localhost:\(server.port)/")
        let without = await downloadError { try await tested.trustingSource.fetch(target) }
        #expect(without != nil)
        let source = tested.source {
          $0.trust(TestCertificate.certificate)
          $0.show(TestCertificate.certificate, TestCertificate.privateKey)
        }
        let fetched = try await source.fetch(target)
        #expect(fetched.bytes == Self.hello)
      }
    }

    @Test("A server does not choose who is shown the certificate", arguments: TestedSource.allCases)
    func showsNoCertificateWhereAServerSays(_ tested: TestedSource) async throws {
      try await withTunnel(.tls(wantsCertificate: true)) { secure in
        let target = "https://localhost:\(secure.port)/"
        let source = tested.source {
          $0.trust(TestCertificate.certificate)
          $0.show(TestCertificate.certificate, TestCertificate.privateKey)
        }
        try await withRunning(source) { session in
          // A connection that was opened with the certificate is not used either.
          #expect(try await session.fetch(url(target)).bytes == Self.hello)
          let named = SourceRequest(url: try url(target), isNamedByServer: true)
          #expect(await downloadError { try await session.open(named).bytes() } != nil)
          try await withScriptedServer { _ in
            .redirect(to: target)
          } _: { server in
            #expect(await downloadError { try await session.fetch(server.url()) } != nil)
          }
          #expect(try await session.fetch(url(target)).bytes == Self.hello)
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func refusesCertificatesThatCannotBeRead(_ tested: TestedSource) async throws {
      let sources = [
        tested.source { $0.trust(file: "/no/such/file") }, tested.source { $0.trust("no certificate") },
        tested.source { $0.trust("") },
      ]
      for source in sources {
        let error = await downloadError { try await source.start(in: SourceContext()) }
        #expect(error?.code == .tls)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func plainTextIsNotTLS(_ tested: TestedSource) async throws {
      try await withTunnel(.talkative) { server in
        let error = await downloadError { try await tested.source().fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .tls)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aRedirectToPlainTextIsRefused(_ tested: TestedSource) async throws {
      try await withTunnel(.tls()) { server in
        let source = tested.trustingSource
        let error = await downloadError { try await source.fetch(url("https://localhost:\(server.port)/insecure")) }
        #expect(error?.code == .insecureRedirect)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aRedirectToTLSIsFollowed(_ tested: TestedSource) async throws {
      try await withTunnel(.tls()) { secure in
        let target = "https://localhost:\(secure.port)/"
        try await withScriptedServer { _ in
          .redirect(to: target)
        } _: { server in
          let fetched = try await tested.trustingSource.fetch(server.url())
          #expect(fetched.bytes == Self.hello)
          #expect(fetched.reply.finalURL?.absoluteString == target)
        }
      }
    }

    @Test(arguments: TestedSource.allCases)
    func silenceDuringTheHandshakeEnds(_ tested: TestedSource) async throws {
      try await withTunnel(.silent) { server in
        let source = tested.source { $0.connectTimeLimit = .milliseconds(100) }
        let error = await downloadError { try await source.fetch(url("https://localhost:\(server.port)/")) }
        #expect(error?.code == .timedOut)
      }
    }

    // MARK: Proxies

    @Test(arguments: TestedSource.allCases)
    func asksAnHTTPProxyInAbsoluteForm(_ tested: TestedSource) async throws {
      try await withScriptedServer { request in
        request.target == "http://example.org/a?b=c"
          ? .redirect(to: "http://example.com:8080/d") : ScriptedReply(200, body: .text("hello"))
      } _: { proxy in
        let source = tested.source { $0.useHTTPProxy("127.0.0.1", proxy.port, ("me", "secret")) }
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

    @Test(arguments: TestedSource.allCases)
    func tunnelsTLSThroughAnHTTPProxy(_ tested: TestedSource) async throws {
      try await withTunnel(.connect(authorization: "Basic bWU6c2VjcmV0")) { proxy in
        let source = try tested.source {
          $0.trust(TestCertificate.certificate)
          try $0.useProxy("http://me:secret@127.0.0.1:\(proxy.port)")
        }
        let fetched = try await source.fetch(url("https://localhost:8443/x"))
        #expect(fetched.bytes == Self.hello)
        #expect(proxy.lines == ["CONNECT localhost:8443 HTTP/1.1", "GET /x HTTP/1.1"])

        let other = tested.source {
          $0.trust(TestCertificate.certificate)
          $0.useHTTPProxy("127.0.0.1", proxy.port, nil)
        }
        let error = await downloadError { try await other.fetch(url("https://localhost:8443/x")) }
        #expect(error?.code == .httpStatus)
        #expect(error?.httpStatus == 407)
      }
    }

    @Test(arguments: TestedSource.allCases)
    func asksASOCKSProxyForTheName(_ tested: TestedSource) async throws {
      try await withTunnel(.socks5) { proxy in
        let source = tested.source { $0.useSOCKSProxy(proxy.port) }
        let fetched = try await source.fetch(url("http://no-such-host.invalid/x"))
        #expect(fetched.bytes == Self.hello)
        #expect(proxy.lines == ["no-such-host.invalid", "GET /x HTTP/1.1"])
      }
    }

    @Test(arguments: TestedSource.allCases)
    func aServerThatIsNoProxyCausesAnError(_ tested: TestedSource) async throws {
      try await withScriptedServer { _ in
        .garbage
      } _: { server in
        for proxyScheme in tested.proxySchemes {
          let source = try tested.source {
            try $0.useProxy("\(proxyScheme)://127.0.0.1:\(server.port)")
            $0.connectTimeLimit = .milliseconds(500)
          }
          for scheme in ["http", "https"] {
            let error = await downloadError { try await source.fetch(url("\(scheme)://example.org/")) }
            #expect(error != nil)
          }
        }
      }
    }

    @Test(
      arguments: TestedSource.allCases,
      [
        ("http://proxy:3128", "http://proxy:3128"), ("proxy:8080", "http://proxy:8080"),
        ("http://proxy", "http://proxy:80"), ("HTTP://me:secret@proxy:1", "http://proxy:1"),
        ("socks5://proxy", "socks5://proxy:1080"),
      ])
    func readsProxyURLs(_ tested: TestedSource, _ example: (text: String, description: String)) throws {
      #expect(try tested.proxy(example.text) == example.description)
    }

    @Test(
      arguments: TestedSource.allCases, ["", "http://", "ftp://proxy:1", "http://proxy:99999", "http://a b:1"])
    func refusesProxyURLs(_ tested: TestedSource, _ text: String) {
      #expect(throws: DownloadError.self) { try tested.proxy(text) }
    }
  }
#endif
