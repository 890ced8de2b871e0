#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeHTTP

  /// Cookies, in memory and in a file: each goes to its host.
  @Suite(.endsHangs)
  struct CookieTests {
    @Test func cookiesAreKeptForTheSession() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Set-Cookie": "id=7; Path=/"])
      } _: { server in
        try await withRunning(HTTPSource { $0.cookies = .memory }) { source in
          for _ in 0..<4 { _ = try await source.fetch(server.url()) }
        }
        #expect(server.requests.map { $0.headers["Cookie"] } == [nil, "id=7", "id=7", "id=7"])
      }
    }

    @Test func noCookiesByDefault() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Set-Cookie": "id=7; Path=/"])
      } _: { server in
        try await withRunning { source in
          for _ in 0..<2 { _ = try await source.fetch(server.url()) }
        }
        #expect(server.requests.map { $0.headers["Cookie"] } == [nil, nil])
      }
    }

    @Test func cookiesAreKeptInAFileThatIsTheUsersAlone() async throws {
      let folder = try TemporaryFolder()
      try await withScriptedServer { request in
        ScriptedReply(200, request.number == 1 ? ["Set-Cookie": "id=7; Path=/; Max-Age=1000"] : [])
      } _: { server in
        for _ in 0..<2 {
          try await withRunning(HTTPSource { $0.cookies = .file(folder.path("jar")) }) { source in
            _ = try await source.fetch(server.url())
          }
        }
        #expect(server.requests.map { $0.headers["Cookie"] } == [nil, "id=7"])
      }
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("jar"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test(
      "a file that is no cookie jar is refused and left alone",
      arguments: [
        #"[{"domain":"127.0.0.1","name":"auth","value":"secret","path":"/"}]"#, "https://example.org/a\n",
        "# a list of my own\n# with comments\n", "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n",
        "# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tid\t7\nnot a cookie\n",
        "a.test FALSE / FALSE 0 id 7\n", "\u{0}\u{1}\t\t\t",
      ])
    func otherFiles(_ text: String) async throws {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array(text.utf8), to: "jar")
      let error = await #expect(throws: DownloadError.self) {
        try await withRunning(HTTPSource { $0.cookies = .file(path) }) { _ in }
      }
      #expect(error?.code == .invalidPipeline && error?.message.contains("by line ") == true, "\(error?.message ?? "")")
      #expect(try folder.read("jar") == Array(text.utf8))
    }

    @Test(
      "jars of other programs are read",
      arguments: [
        "", "\n", "# Netscape HTTP Cookie File\n", "# HTTP Cookie File\r\n\r\n",
        "a.test\tFALSE\t/\tFALSE\t0\tid\t7", "#HttpOnly_.a.test\ttrue\t/\tfalse\t0\tid\t7\r\n# a comment\n",
        "\u{FEFF}# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tempty\t\n",
      ])
    func jars(_ text: String) { #expect(CookieFile.lineWithoutCookie(Data(text.utf8)) == nil) }

    @Test("a jar behind a link is updated in its place", arguments: [true, false])
    func linkedJar(_ isThere: Bool) async throws {
      let folder = try TemporaryFolder()
      if isThere { _ = try folder.write(Array("# Netscape HTTP Cookie File\n".utf8), to: "kept/jar") }
      try FileManager.default.createDirectory(atPath: folder.path("kept"), withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: "second")
      try FileManager.default.createSymbolicLink(atPath: folder.path("second"), withDestinationPath: "kept/jar")
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Set-Cookie": "id=7; Path=/; Max-Age=1000"])
      } _: { server in
        try await withRunning(HTTPSource { $0.cookies = .file(folder.path("link")) }) { source in
          _ = try await source.fetch(server.url())
        }
      }
      for (link, destination) in [("link", "second"), ("second", "kept/jar")] {
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder.path(link)) == destination)
      }
      #expect(String(decoding: try folder.read("kept/jar"), as: UTF8.self).contains("\tid\t7"))
    }

    @Test("a file that took the place of the jar meanwhile is left alone")
    func replacedJar() async throws {
      let folder = try TemporaryFolder()
      try await withScriptedServer { _ in
        ScriptedReply(200, ["Set-Cookie": "id=7; Path=/; Max-Age=1000"])
      } _: { server in
        try await withRunning(HTTPSource { $0.cookies = .file(folder.path("jar")) }) { source in
          _ = try await source.fetch(server.url())
          _ = try folder.write(Array("notes\n".utf8), to: "jar")
        }
      }
      #expect(try folder.read("jar") == Array("notes\n".utf8))
    }

    @Test func aCookieForAPublicSuffixIsNotKept() async throws {
      try await withScriptedServer { request in
        ScriptedReply(
          200, [request.number == 1 ? "Set-Cookie" : "X": "id=7; Domain=co.uk; Path=/"])
      } _: { server in
        let addresses = [
          HTTPSource.HostAddress(host: "a.co.uk", port: server.port, addresses: ["127.0.0.1"]),
          HTTPSource.HostAddress(host: "b.co.uk", port: server.port, addresses: ["127.0.0.1"]),
        ]
        let source = HTTPSource {
          $0.cookies = .memory
          $0.resolve = addresses
        }
        try await withRunning(source) { source in
          _ = try await source.fetch(url("http://a.co.uk:\(server.port)/"))
          _ = try await source.fetch(url("http://b.co.uk:\(server.port)/"))
        }
        #expect(server.requests.map { $0.headers["Cookie"] } == [nil, nil])
      }
    }

    @Test("a place that a server has named gets the cookies of its own host, and no others")
    func cookiesOfNamedPlaces() async throws {
      try await withScriptedServer { request in
        request.path == "/set"
          ? ScriptedReply(200, ["Set-Cookie": "of=\(request.headers["Host"]?.first.map(String.init) ?? ""); Path=/"])
          : ScriptedReply(200)
      } _: { server in
        let source = HTTPSource {
          $0.cookies = .memory
          $0.resolve = ["a.test", "b.test"].map { .init(host: $0, port: server.port, addresses: ["127.0.0.1"]) }
        }
        try await withRunning(source) { source in
          for host in ["a", "b"] { _ = try await source.fetch(url("http://\(host).test:\(server.port)/set")) }
          let place = try url("http://b.test:\(server.port)/file")
          try await source.open(SourceRequest(url: place, isNamedByServer: true)).body.discard()
        }
        #expect(server.requests.last?.headers["Cookie"] == "of=b", "\(server.requests)")
      }
    }

    /// libcurl remembers the `Host` field of a handle for its cookies, also when the handle serves another host.
    @Test func cookiesOfAHostFieldStayWithThatHost() async throws {
      try await withScriptedServer { _ in
        ScriptedReply(200)
      } _: { other in
        try await withScriptedServer { request in
          request.number == 1
            ? ScriptedReply(200, ["Set-Cookie": "sid=secret; Path=/"]) : .redirect(to: other.url().absoluteString)
        } _: { server in
          try await withRunning(HTTPSource { $0.cookies = .memory }) { source in
            for _ in 0..<6 { _ = try await source.fetch(server.url(), headers: ["Host": "bank.test"]) }
          }
          #expect(server.requests.dropFirst().allSatisfy { $0.headers["Cookie"] == "sid=secret" })
          #expect(other.requests.allSatisfy { $0.headers["Cookie"] == nil })
        }
      }
    }
  }
#endif
