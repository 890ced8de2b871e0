#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeHTTP

  /// User names, passwords and tokens: each goes to its origin.
  @Suite(.endsHangs)
  struct HTTPCredentialsTests {
    private static let basic = "Basic " + Data("me:s3cret".utf8).base64EncodedString()

    private func origin(_ server: ScriptedHTTPServer) throws -> Origin { try #require(Origin(server.url())) }

    @Test func basicIsSentWithTheFirstRequestToItsOrigin() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        try await withScriptedServer { request in
          request.path == "/away" ? .redirect(to: other.url("/there").absoluteString) : .redirect(to: "/away")
        } _: { server in
          let mine = try origin(server)
          let source = HTTPSource {
            $0.credentials = [.password(user: "me", password: "s3cret", for: mine)]
          }
          _ = try await source.fetch(server.url())
          #expect(server.requests.map { $0.headers["Authorization"] } == [Self.basic, Self.basic])
          #expect(other.requests.map { $0.headers["Authorization"] } == [nil])
        }
      }
    }

    @Test func userInformationOfTheURLPrecedes() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let mine = try origin(server)
        let source = HTTPSource { $0.credentials = [.password(user: "other", password: "x", for: mine)] }
        _ = try await source.fetch(url("http://me:s3cret@127.0.0.1:\(server.port)/"))
        _ = try await source.fetch(server.url(), headers: ["Authorization": "Bearer own"])
        #expect(server.requests.map { $0.headers["Authorization"] } == [Self.basic, "Bearer own"])
      }
    }

    @Test func bearer() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let mine = try origin(server)
        _ = try await HTTPSource { $0.credentials = [.bearer("abc", for: mine)] }.fetch(server.url())
        #expect(server.requests.map { $0.headers["Authorization"] } == ["Bearer abc"])
      }
    }

    @Test(arguments: [HTTPSource.PasswordSchemes.digest, .any])
    func digestIsSentWhenTheServerAsks(_ schemes: HTTPSource.PasswordSchemes) async throws {
      try await withScriptedServer { request in
        guard let authorization = request.headers["Authorization"] else {
          return ScriptedReply(
            401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"],
            body: .text("who are you"))
        }
        return authorization.hasPrefix("Digest username=\"me\"")
          ? ScriptedReply(200, body: .text("file")) : ScriptedReply(403)
      } _: { server in
        let mine = try origin(server)
        let source = HTTPSource {
          $0.credentials = [.password(user: "me", password: "s3cret", schemes: schemes, for: mine)]
        }
        let fetched = try await source.fetch(server.url())
        #expect(fetched.bytes == Array("file".utf8))
        #expect(server.requests.count == 2)
      }
    }

    /// The answer to a password that is wrong is the answer.
    @Test(arguments: [HTTPSource.PasswordSchemes.basic, .digest, .any])
    func aRefusedPasswordIsA401(_ schemes: HTTPSource.PasswordSchemes) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\""], body: .text("no"))
      } _: { server in
        let mine = try origin(server)
        let source = HTTPSource {
          $0.credentials = [.password(user: "me", password: "wrong", schemes: schemes, for: mine)]
        }
        let fetched = try await source.fetch(server.url())
        #expect(fetched.reply.coverage == .none(.status(401)))
        #expect(fetched.bytes == Array("no".utf8))
      }
    }

    /// libcurl forgives a response that ends in its head; the question before it is not the answer either.
    @Test func aHeadThatIsCutShortAfterTheQuestionIsNoAnswer() async throws {
      try await withScriptedServer { request in
        request.headers["Authorization"] == nil
          ? ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\""])
          : ScriptedReply([.send("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n"), .close])
      } _: { server in
        let mine = try origin(server)
        let source = HTTPSource {
          $0.credentials = [.password(user: "me", password: "s3cret", schemes: .digest, for: mine)]
        }
        let error = await downloadError { try await source.fetch(server.url()) }
        #expect(error?.code == .network, "\(error.map(String.init(describing:)) ?? "no error")")
      }
    }

    @Test func netrc() async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(
        Array("machine example.org login x password y\nmachine 127.0.0.1 login me password s3cret\n".utf8), to: "netrc")
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        _ = try await HTTPSource { $0.netrc = .file(path) }.fetch(server.url())
        #expect(server.requests.map { $0.headers["Authorization"] } == [Self.basic])
      }
    }

    @Test(
      "A user in the URL selects that user's entry",
      arguments: [
        ("machine HOST login one password 1\nmachine HOST login two password 2", "one", "1"),
        ("machine HOST login one password 1\nmachine HOST login two password 2", "two", "2"),
        ("machine HOST password 5up3r53cr37", "user", "5up3r53cr37"),
        (
          "machine HOST\npassword weird\nlogin daniel\n\nmachine HOST\n\nmachine HOST\nlogin debbie\n"
            + "\nmachine HOST\npassword weird\npassword \"second\\r\"\nlogin debbie", "debbie", "second\r"
        ),
        (
          "machine other login me password 1\n# machine HOST login me password 2\ndefault login me password #3", "me",
          "#3"
        ),
        ("macdef init\nmachine HOST login me password 1\n\nmachine HOST account x login me password 2", "me", "2"),
        ("machine HOST login one password 1", "two", ""),
      ])
    func netrcOfAUser(_ text: String, _ user: String, _ password: String) async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array(text.replacingOccurrences(of: "HOST", with: "127.0.0.1").utf8), to: "netrc")
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let url = "\(server.url())".replacingOccurrences(of: "http://", with: "http://\(user)@")
        _ = try await HTTPSource { $0.netrc = .file(path) }.fetch(try #require(URL(string: url)))
        let field = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
        #expect(server.requests.map { $0.headers["Authorization"] } == [field])
      }
    }

    @Test("Passwords of netrc and of URLs go by Digest, where that is asked for", arguments: ["netrc", "URL"])
    func digestOfOtherPlaces(_ place: String) async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array("machine 127.0.0.1 login %a\"b password s3cret\n".utf8), to: "netrc")
      try await withScriptedServer { request in
        request.headers["Authorization"] == nil
          ? ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\""]) : ScriptedReply(200)
      } _: { server in
        let source = HTTPSource {
          $0.passwordSchemes = .digest
          if place == "netrc" { $0.netrc = .file(path) }
        }
        let written = "\(server.url())"
        let url = place == "netrc" ? written : written.replacingOccurrences(of: "//", with: "//%25a%22b:s3cret@")
        _ = try await source.fetch(try #require(URL(string: url)))
        let fields = server.requests.map { $0.headers["Authorization"] ?? "" }
        #expect(fields.count == 2 && fields.first == "")
        #expect(fields.last?.hasPrefix("Digest username=\"%a\\\"b\",") == true, "\(fields)")
      }
    }

    @Test("A line break in a name does not become a line of the request")
    func digestOfALineBreak() async throws {
      try await withScriptedServer { request in
        request.headers["Authorization"] == nil
          ? ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\""]) : ScriptedReply(200)
      } _: { server in
        let url = "\(server.url())".replacingOccurrences(of: "//", with: "//a%0d%0aX-Evil:%20b:s3cret@")
        _ = try await HTTPSource { $0.passwordSchemes = .digest }.fetch(try #require(URL(string: url)))
        let last = try #require(server.requests.last)
        #expect(last.headers["X-Evil"] == nil)
        #expect(last.headers["Authorization"]?.contains("\"a%0D%0AX-Evil\"") == true)
      }
    }

    @Test("Places that a server names get nothing of the settings", arguments: ["netrc", "password", "bearer"])
    func namedByAServer(_ kind: String) async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(
        Array("machine 127.0.0.1 login me password s3cret\nmachine localhost login me password s3cret\n".utf8),
        to: "netrc")
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        let elsewhere = "http://localhost:\(other.port)/"
        try await withScriptedServer { _ in
          .redirect(to: elsewhere)
        } _: { server in
          let origins = try [#require(Origin(server.url())), #require(Origin(elsewhere))]
          let source = HTTPSource {
            switch kind {
            case "netrc": $0.netrc = .file(path)
            case "password": $0.credentials = origins.map { .password(user: "me", password: "s3cret", for: $0) }
            default: $0.credentials = origins.map { .bearer("s3cret", for: $0) }
            }
          }
          _ = try await source.fetch(server.url())
          try await source.open(SourceRequest(url: server.url(), isNamedByServer: true)).body.discard()
          #expect(server.requests.map { $0.headers["Authorization"] != nil } == [true, false])
          #expect(other.requests.map { $0.headers["Authorization"] } == [nil, nil])
        }
      }
    }

    @Test("a long URL reaches the server")
    func longURLs() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let query = String(repeating: "q", count: 20_000)
        let request = try DownloadRequest("\(server.url("/file"))?\(query)")
        _ = try await HTTPSource().fetch(request.url)
        #expect(server.requests.count == 1)
      }
    }

    @Test(arguments: ["machine 127.0.0.1 login me password s3cret", "default login me password s3cret"])
    func netrcIsNotReadForARedirectToAnotherOrigin(_ entry: String) async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array("\(entry)\n".utf8), to: "netrc")
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        try await withScriptedServer { _ in
          .redirect(to: other.url().absoluteString)
        } _: { server in
          _ = try await HTTPSource { $0.netrc = .file(path) }.fetch(server.url())
          #expect(server.requests.map { $0.headers["Authorization"] } == [Self.basic])
          #expect(other.requests.map { $0.headers["Authorization"] } == [nil])
        }
      }
    }

    @Test func noDescriptionHasASecret() throws {
      let origin = try #require(Origin("https://a.test"))
      var configuration = HTTPSource.Configuration()
      configuration.credentials = [
        .password(user: "me", password: "s3cret", for: origin), .bearer("s3cret", for: origin),
      ]
      configuration.proxy = .proxy(try HTTPSource.Proxy("http://me:s3cret@p:1"))
      var text = "\(configuration) \(String(reflecting: configuration)) \(configuration.credentials)"
      dump(configuration, to: &text)
      #expect(!text.contains("s3cret") && text.contains("a.test"), "\(text)")
    }
  }
#endif
