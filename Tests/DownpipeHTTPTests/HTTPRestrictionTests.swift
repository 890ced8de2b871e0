#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// What a source does not do for links from strangers.
  @Suite(.endsHangs)
  struct HTTPRestrictionTests {
    @Test(arguments: [
      "127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]", "rebound.example",
    ])
    func privateAddressesAreNotConnectedTo(_ host: String) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let source = HTTPSource {
          $0.blocksPrivateAddresses = true
          $0.resolve = [.init(host: "rebound.example", port: server.port, addresses: ["127.0.0.1"])]
        }
        let error = await downloadError { try await source.fetch(url("http://\(host):\(server.port)/")) }
        #expect(error?.code == .privateAddress)
        #expect(server.requests.isEmpty)
      }
    }

    /// Also with the proxy of the environment: it would look names up itself.
    @Test func noProxyIsUsedWithBlockedAddresses() async throws {
      var configuration = HTTPSource.Configuration()
      configuration.blocksPrivateAddresses = true
      configuration.proxy = .proxy(.init(.http, host: "127.0.0.1", port: 1))
      let source = HTTPSource(configuration)
      let error = await downloadError { try await source.start(in: SourceContext()) }
      #expect(error?.code == .invalidPipeline)
    }

    @Test func theProfileForUntrustedLinks() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { server in
        let source = HTTPSource(.untrusted)
        let refused = await downloadError { try await source.fetch(server.url()) }
        #expect(refused?.code == .unsupportedURL, "the port is not allowed")
        #expect(refused?.message.contains("allowed are 80, 443") == true, "\(refused?.message ?? "")")
        var configuration = HTTPSource.Configuration.untrusted
        configuration.allowedPorts = nil
        let error = await downloadError { try await HTTPSource(configuration).fetch(server.url()) }
        #expect(error?.code == .privateAddress)
        #expect(server.requests.isEmpty)
      }
    }

    @Test func aRedirectToAPortThatIsNotAllowedIsNotFollowed() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        try await withScriptedServer { _ in
          .redirect(to: other.url().absoluteString)
        } _: { server in
          let source = HTTPSource { $0.allowedPorts = [server.port] }
          let error = await downloadError { try await source.fetch(server.url()) }
          #expect(error?.code == .unsupportedURL)
          #expect(other.requests.isEmpty)
        }
      }
    }

    @Test(arguments: [true, false])
    func aFileThatIsTooLargeEndsTheTransfer(_ isAnnounced: Bool) async throws {
      let content = ScriptedContent.pattern(size: 200_000)
      try await withScriptedServer { _ in
        isAnnounced
          ? ScriptedReply(200, body: content)
          : ScriptedReply([.send("HTTP/1.1 200 OK\r\n\r\n"), .content(content, 0..<200_000), .close])
      } _: { server in
        let error = await downloadError {
          try await HTTPSource { $0.maximumSize = 100_000 }.fetch(server.url())
        }
        #expect(error?.code == .tooLarge)
        _ = try await HTTPSource { $0.maximumSize = 200_000 }.fetch(server.url())
      }
    }

    /// The limit is that of the file, and not of the part that is asked for.
    @Test func theLimitCountsTheBytesBeforeARange() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(
          206, ["Content-Range": "bytes 90-99/100", "ETag": "\"a\""], body: .text("0123456789"))
      } _: { server in
        let range = RequestedRange(from: 90)
        let error = await downloadError {
          try await HTTPSource { $0.maximumSize = 99 }.fetch(server.url(), range: range)
        }
        #expect(error?.code == .tooLarge)
        _ = try await HTTPSource { $0.maximumSize = 100 }.fetch(server.url(), range: range)
      }
    }

    @Test func theHeaderIsLimited() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, ["X": String(repeating: "a", count: 3000)])
      } _: { server in
        let error = await downloadError {
          try await HTTPSource { $0.maximumHeaderBytes = 2000 }.fetch(server.url())
        }
        #expect(error?.code == .invalidResponse)
      }
    }

    @Test func namesHaveTheGivenAddresses() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("ok"))
      } _: { server in
        let source = HTTPSource {
          $0.resolve = [.init(host: "Files.Example.org", port: server.port, addresses: ["127.0.0.1"])]
        }
        let fetched = try await source.fetch(url("http://files.example.org:\(server.port)/"))
        #expect(fetched.bytes == Array("ok".utf8))
        #expect(server.requests.first?.headers["Host"] == "files.example.org:\(server.port)")
      }
    }

    @Test func namesBelowLocalhostAreLocal() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, body: .text("ok"))
      } _: { server in
        let fetched = try await HTTPSource().fetch(url("http://a.localhost:\(server.port)/"))
        #expect(fetched.bytes == Array("ok".utf8))
      }
    }
  }
#endif
