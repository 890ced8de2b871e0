#if LIBCURL
  import DownpipeCore
  import DownpipeFileTransfer
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Which server gets which name and password.
  @Suite("Log-ins of FTP", .endsHangs)
  struct LogInTests {
    /// The user and the password that the server gets.
    private func sent(
      _ userInfo: String = "", headers: HeaderFields = [], isNamedByServer: Bool = false,
      _ configure: (inout FileTransferSource.Configuration, Origin) throws -> Void = { _, _ in }
    ) async throws -> [String] {
      let server = try ScriptedFTPServer(.init(content: [1, 2, 3]))
      defer { server.end() }
      var configuration = FileTransferSource.Configuration()
      configuration.proxy = .none
      configuration.encryption = .none
      try configure(&configuration, try #require(Origin(server.text())))
      return try await withRunning(FileTransferSource(configuration)) { session in
        let text = server.text().replacing("ftp://", with: "ftp://\(userInfo)")
        _ = try await session.fetch(try url(text), headers: headers, isNamedByServer: isNamedByServer)
        return server.commands.filter { $0.hasPrefix("USER") || $0.hasPrefix("PASS") }
      }
    }

    private static let me = ["USER me", "PASS pw"]

    @Test func anonymousByDefault() async throws {
      #expect(try await sent().first == "USER anonymous")
    }

    @Test func theURLPrecedesTheFieldPrecedesTheSettings() async throws {
      let field: HeaderFields = ["Authorization": "Basic \(Data("field:pw".utf8).base64EncodedString())"]
      func own(_ configuration: inout FileTransferSource.Configuration, _ origin: Origin) {
        configuration.credentials = [.init(user: "own", password: "pw", for: origin)]
      }
      #expect(try await sent("me:pw@", headers: field, own) == Self.me)
      #expect(try await sent("m%65:p%77@") == Self.me)
      #expect(try await sent(headers: field, own) == ["USER field", "PASS pw"])
      #expect(try await sent("", own) == ["USER own", "PASS pw"])
      #expect(try await sent(headers: ["Authorization": "Bearer abc"]).first == "USER anonymous")
    }

    @Test func netrcIsRead() async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(
        Array("machine 127.0.0.1 login other password no\nmachine 127.0.0.1 login me password pw\n".utf8), to: "netrc")
      #expect(try await sent { configuration, _ in configuration.netrc = .file(path) } == ["USER other", "PASS no"])
      #expect(try await sent("me@") { configuration, _ in configuration.netrc = .file(path) } == Self.me)
    }

    @Test func otherOriginsGetNothing() async throws {
      for text in ["ftps://127.0.0.1", "ftp://127.0.0.1:1", "ftp://localhost"] {
        let sent = try await sent { configuration, _ in
          configuration.credentials = [.init(user: "me", password: "pw", for: try #require(Origin(text)))]
        }
        #expect(sent.first == "USER anonymous", "\(text)")
      }
    }

    @Test func placesThatAServerNamesGetNothing() async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array("default login me password pw\n".utf8), to: "netrc")
      let field: HeaderFields = ["Authorization": "Basic \(Data("me:pw".utf8).base64EncodedString())"]
      let sent = try await sent("me:pw@", headers: field, isNamedByServer: true) { configuration, origin in
        configuration.netrc = .file(path)
        configuration.credentials = [.init(user: "me", password: "pw", for: origin)]
      }
      #expect(sent.first == "USER anonymous" && !sent.contains("PASS pw"))
    }

    /// An idle connection of one user does not serve another one.
    @Test func connectionsAreNotSharedByUsers() async throws {
      let server = try ScriptedFTPServer(.init(content: [1, 2, 3]))
      defer { server.end() }
      var configuration = FileTransferSource.Configuration()
      configuration.proxy = .none
      configuration.encryption = .none
      try await withRunning(FileTransferSource(configuration)) { session in
        for user in ["", "a:1@", "b:2@", "a:1@"] {
          _ = try await session.fetch(try url(server.text().replacing("ftp://", with: "ftp://\(user)")))
        }
        #expect(server.commands.filter { $0.hasPrefix("USER") } == ["USER anonymous", "USER a", "USER b"])
      }
    }
  }
#endif
