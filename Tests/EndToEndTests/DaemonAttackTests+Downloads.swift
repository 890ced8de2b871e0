#if RPC
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd.DaemonAttackTests {
    private static let gid = "00000000000000a1"

    /// A file over a connection of its own: the daemon would keep it for a while.
    private static func file(_ text: String, name: String? = nil, for request: ScriptedRequest) -> ScriptedReply {
      .file(.text(text), etag: "\"1\"", name: name, for: request).setting(["Connection": "close"]).truncated(
        after: .max)
    }

    // MARK: Paths

    /// The files below a folder with their contents, and its folders and links; without the ledger and what has not
    /// arrived yet.
    private static func tree(_ path: String) throws -> [String: String] {
      var tree: [String: String] = [:]
      for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
        if name.contains(".downpipe/ledger.sqlite") || name.contains(".downpipe/partials") { continue }
        let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
        switch attributes[.type] as? FileAttributeType {
        case .typeRegular: tree[name] = FileManager.default.contents(atPath: path + "/" + name)?.base64EncodedString()
        case .typeSymbolicLink:
          tree[name] = try FileManager.default.destinationOfSymbolicLink(atPath: path + "/" + name)
        default: tree[name] = "a folder"
        }
      }
      return tree
    }

    /// Runs what was added to its end.
    private func finish(_ gid: JSON, _ daemon: Daemon) async throws -> String {
      var state = ""
      try await daemon.until {
        state = try await daemon.told(gid.text ?? "", "status") ?? ""
        return ["complete", "error"].contains(state)
      }
      return state
    }

    @Test("no path of a client leads out of the folder, or to what the daemon keeps in it")
    func paths() async throws {
      let place = try TemporaryFolder()
      let folder = place.path("folder")
      try place.write(Array("kept".utf8), to: "outside/target")
      try place.write([], to: "folder/real/empty")
      for (link, target) in [("link", "../outside"), ("file", "../outside/target"), ("real/up", "../..")] {
        try FileManager.default.createSymbolicLink(atPath: folder + "/" + link, withDestinationPath: target)
      }
      // A name that nothing else has, so that it can be looked for in the folders of the system.
      let mark = "downpipe-attack-\(UUID().uuidString)"
      let refused = [
        "../\(mark)", "/etc/\(mark)", "a/../../\(mark)", "real/../../\(mark)", "..", "a\0b", "/\(mark)",
        "//etc/\(mark)", "\(folder)/../\(mark)", "\(place.path)/outside/\(mark)", ".downpipe/\(mark)",
        ".downpipe/ledger.sqlite", ".downpipe/rpc-secret", ".DownPipe/rpc-secret", "./.downpipe/\(mark)",
        "real/../.downpipe/rpc-secret", "a/\u{301}../../../\(mark)",
      ]
      // These are names as others, or lead through a link, which ends with an error.
      let others = [
        "link/\(mark)", "file", "link", "real/up/\(mark)", "real/up/outside/\(mark)", "..\\..\\\(mark)",
        "%2e%2e/\(mark)", "..%2f\(mark)", "~/\(mark)", "$HOME/\(mark)", "/\u{301}../\(mark)", "\u{2025}/\(mark)",
        "-rf", "file:/etc/\(mark)",
      ]
      let metalink = { (name: String, url: String) in
        let text = """
          <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="\(name)"><url>\(url)</url></file></metalink>
          """
        return JSON.text(Data(text.utf8).base64EncodedString())
      }
      // What a client may change. By bytes: a slash with a combining mark is another character.
      func isInside(_ name: String) -> Bool {
        name.utf8.starts(with: "folder/".utf8) && !name.utf8.starts(with: "folder/.downpipe".utf8)
      }
      try await withScriptedServer({ request in
        let name = request.path.contains("named") ? "../../\(mark)" : nil
        return Self.file("evil", name: name, for: request)
      }) { server in
        try await withDaemon(in: folder) { daemon in
          let outside = try Self.tree(place.path).filter { !isInside($0.key) }
          #expect(outside["folder/.downpipe/rpc-secret"] != nil)
          var added: [JSON] = []
          var number = 0
          func url() -> JSON {
            number += 1
            return .text("\(server.url("/f\(number)"))")
          }
          let waiting = try await daemon.call("aria2.addUri", [url()], ["pause": "true", "gid": .text(Self.gid)])
          added.append(waiting)
          for path in refused {
            for option in ["dir", "out"] {
              let options: JSON = [option: .text(path)]
              await #expect(throws: RPCRefusal.self, "\(options)") {
                try await daemon.call("aria2.addUri", [url()], options)
              }
              await #expect(throws: RPCRefusal.self, "\(options)") {
                try await daemon.call("aria2.changeOption", waiting, options)
              }
            }
            await #expect(throws: RPCRefusal.self, "\(path)") {
              try await daemon.call("aria2.changeGlobalOption", ["dir": .text(path)])
            }
          }
          for path in others {
            for options in [["dir": .text(path)], ["out": .text(path)]] as [JSON] {
              if let gid = try? await daemon.call("aria2.addUri", [url()], options) { added.append(gid) }
            }
          }
          // aria2 has this option for documents with many files; here it is no option.
          for path in refused + others {
            let gid = try? await daemon.call("aria2.addUri", [url()], ["index-out": .text("1=\(path)")])
            if let gid { added.append(gid) }
            let document = metalink(path.replacing("\0", with: ""), url().text ?? "")
            if let gids = try? await daemon.call("aria2.addMetalink", document) { added += gids.list }
          }
          // Names of the server, and those that a URL has.
          for path in ["/named", "/..", "/%2e%2e%2f%2e%2e%2f\(mark)", "/..%5c..%5c\(mark)", "/.downpipe", "/a%00b"] {
            if let gid = try? await daemon.call("aria2.addUri", [.text("\(server.url())" + path.dropFirst())]) {
              added.append(gid)
            }
          }
          try await daemon.call("aria2.unpause", waiting)
          #expect(added.count > 20)
          var states: Set<String> = []
          for gid in added { states.insert(try await finish(gid, daemon)) }
          #expect(states == ["complete", "error"], "some lead through links, and some do not")

          let all = try Self.tree(place.path)
          let after = all.filter { !isInside($0.key) }
          #expect(after == outside)
          #expect(all["folder/f1"] != nil, "what does not lead out arrives")
          for place in ["/", "/etc", "/tmp", NSHomeDirectory(), FileManager.default.currentDirectoryPath] {
            #expect(!FileManager.default.fileExists(atPath: place + "/" + mark), "\(place)")
          }
        }
      }
    }

    // MARK: Fields

    @Test("no value of a client adds a field to a request, or a request")
    func fields() async throws {
      try await withScriptedServer({ Self.file("content", for: $0) }) { server in
        try await withDaemon { daemon in
          let wrong = [
            "x\r\nX-Evil: y", "x\nX-Evil: y", "x\rX-Evil: y", "x\0", "x\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", "x\u{7F}",
          ]
          var refused: [JSON] = [
            ["header": "A: b\r\nX-Evil: c"], ["header": ["A: b", "B: c\rX-Evil: d"]], ["header": "A: b\0"],
            ["header": "A\r\nX-Evil: b"], ["header": "A b: c"], ["header": ": x"], ["header": "no colon"],
            ["header": "X-Evil : y"], ["header": "Host: evil.example"], ["header": "Content-Length: 5"],
            ["header": "Range: bytes=0-"], ["header": ["A: b\r\n\r\nGET /evil HTTP/1.1"]],
          ]
          for value in wrong {
            refused += [["referer": .text(value)], ["user-agent": .text(value)]]
            // LF separates fields here, as with aria2: a client may give any.
            if value != "x\nX-Evil: y" { refused.append(["header": .text("A: \(value)")]) }
          }
          for options in refused {
            await #expect(throws: RPCRefusal.self, "\(options)") {
              try await daemon.call("aria2.addUri", [.text("\(server.url("/refused"))")], options)
            }
          }
          // They are within Base64, or are left out, or are part of the target.
          var added: [JSON] = []
          var accepted: [JSON] = [
            [
              "header": [
                "Transfer-Encoding: chunked", "Connection: X-Evil", "TE: x", "Upgrade: x", "Proxy-Connection: x",
              ]
            ]
          ]
          for value in wrong {
            accepted += [["http-user": .text(value)], ["http-user": "a", "http-passwd": .text(value)]]
          }
          for options in accepted {
            let gid = try? await daemon.call("aria2.addUri", [.text("\(server.url("/f\(added.count)"))")], options)
            if let gid { added.append(gid) }
          }
          for path in [
            "a\r\nX-Evil: y", "a HTTP/1.1\r\nX-Evil: y\r\n\r\n", "a%0d%0aX-Evil:%20y", "a\tb", "a#\r\nX-Evil: y",
          ] {
            if let gid = try? await daemon.call("aria2.addUri", [.text("\(server.url("/"))\(path)")]) {
              added.append(gid)
            }
          }
          #expect(added.count > accepted.count / 2)
          for gid in added {
            let state = try await finish(gid, daemon)
            #expect(state == "complete")
          }
          #expect(server.requests.count == added.count, "\(server.requests)")
          for request in server.requests {
            let names = Set(request.headers.fields.map { $0.name.lowercased() })
            #expect(
              names.isDisjoint(with: ["x-evil", "transfer-encoding", "upgrade", "te", "content-length"]), "\(request)")
            #expect(request.path != "/evil" && request.path != "/refused", "\(request)")
            #expect(request.headers.fields.allSatisfy { !$0.value.contains("X-Evil") }, "\(request)")
          }
        }
      }
    }

    // MARK: URLs

    @Test("URLs of files, of other protocols and without a host are refused")
    func otherSchemes() async throws {
      try await withScriptedServer({ .file(.text("content"), for: $0) }) { server in
        try await withDaemon { daemon in
          let here = "127.0.0.1:\(server.port)"
          let urls = [
            "file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "gopher://\(here)/_x",
            "dict://\(here)/x", "ldap://\(here)", "smb://\(here)/x", "scp://\(here)/x", "tftp://\(here)/x",
            "telnet://\(here)", "ws://\(here)", "data:,x", "javascript:x", "mailto:x@\(here)", "blob:http://\(here)/",
            "view-source:http://\(here)/", "metalink:http://\(here)", "http+unix://x/", "//\(here)/", "/etc/passwd",
            "x", "", "http:///x", "ftp:///x", "sftp:///x", "http://", "https://?x", "http://@/x", "http://:80/x",
            "http://127.0.0.1:99999/", "http://a b/",
          ]
          for url in urls {
            await #expect(throws: RPCRefusal.self, "\(url)") { try await daemon.call("aria2.addUri", [.text(url)]) }
          }
          // Beside a good one they are left out.
          let gid = try await daemon.call(
            "aria2.addUri", .list(["http://example.invalid/x"] + urls.map { .text($0) }), ["pause": "true"])
          let told = try await daemon.call("aria2.getUris", gid).list
          #expect(Set(told.map { $0["uri"] }) == ["http://example.invalid/x"])
          let changes = try await daemon.call("aria2.changeUri", gid, 1, [], .list(urls.map { .text($0) }))
          #expect(changes == [0, 0])
          await #expect(throws: RPCRefusal.self) {
            try await daemon.call("aria2.changeUri", gid, 1, ["http://example.invalid/x"], ["file:///etc/passwd"])
          }
          #expect(server.activity.connections == 0)
        }
      }
    }

    #if LIBCURL
      /// A server at a port that URLs of strangers may have: those with other ones are refused for their ports.
      private static func publicPortServer() async throws -> ScriptedHTTPServer {
        for port in [8080, 8443, 80] {
          let server = try? await ScriptedHTTPServer.start(host: "127.0.0.1", port: port, onLoss: { _ in }) {
            .file(.text("secret"), for: $0)
          }
          if let server { return server }
        }
        return try await ScriptedHTTPServer.start(host: "127.0.0.1", port: 443, onLoss: { _ in }) {
          .file(.text("secret"), for: $0)
        }
      }

      @Test("without --trust-clients nothing connects to this machine or its network")
      func ownNetwork() async throws {
        let server = try await Self.publicPortServer()
        let port = server.port
        try await withCleanup {
          await server.shutdown()
        } _: {
          try await withDaemon(trustsClients: false) { daemon in
            let hosts = [
              "127.0.0.1", "localhost", "LocalHost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0",
              "127.0.0.2", "127.255.255.254", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
              "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "10.0.0.1", "172.16.0.1", "192.168.0.1",
              "169.254.169.254", "100.64.0.1", "①②⑦.0.0.1", "127。0。0。1", "%31%32%37.0.0.1", "user:pass@127.0.0.1",
              "example.org@127.0.0.1", "example.org:80@127.0.0.1",
            ]
            var urls = hosts.map { "http://\($0):\(port)/x" }
            urls += ["https", "ftp", "ftps", "sftp"].map { "\($0)://127.0.0.1:\(port)/x" }
            // Another port is none of a server of the internet.
            urls.append("http://127.0.0.1:9/x")
            // Options for proxies lead nowhere, either.
            let proxy = JSON.text("http://127.0.0.1:\(port)")
            for name in ["all-proxy", "http-proxy", "https-proxy", "ftp-proxy"] {
              await #expect(throws: RPCRefusal.self) {
                try await daemon.call("aria2.addUri", ["http://example.invalid/x"], [name: proxy])
              }
            }
            var added: [(url: String, gid: JSON)] = []
            for url in urls {
              if let gid = try? await daemon.call("aria2.addUri", [.text(url)]) { added.append((url, gid)) }
            }
            // A download that leads elsewhere at first, and one of a document.
            let changed = try await daemon.call("aria2.addUri", ["http://example.invalid/x"], ["pause": "true"])
            let local = JSON.text("http://127.0.0.1:\(port)/changed")
            try await daemon.call("aria2.changeUri", changed, 1, ["http://example.invalid/x"], [local])
            try await daemon.call("aria2.unpause", changed)
            added.append(("changeUri", changed))
            let document = """
              <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a">
              <url>http://127.0.0.1:\(port)/document</url></file></metalink>
              """
            let gids = try await daemon.call("aria2.addMetalink", .text(Data(document.utf8).base64EncodedString()))
            added += gids.list.map { ("addMetalink", $0) }
            #expect(added.count > hosts.count / 2)
            for (url, gid) in added {
              let state = try await finish(gid, daemon)
              let message = try await daemon.told(gid.text ?? "", "errorMessage") ?? ""
              #expect(state == "error", "\(url): \(state)")
              #expect(
                message.contains("not an address of the public internet") || message.contains("allowed"),
                "\(url): \(message)")
            }
            #expect(server.activity.connections == 0, "\(server.requests)")
          }
        }
      }
    #endif
  }
#endif
