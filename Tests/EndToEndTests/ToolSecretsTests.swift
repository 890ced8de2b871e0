import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// A secret in each place of a request: the server gets it, and no other place.
  @Suite(.serialized) struct ToolSecretsTests {
    /// Values of a query are secrets for any name of their fields; a part without a name is one, too.
    private static let query = "CANARY&k=CANARY&passkey=CANARY&pin=CANARY&email=CANARY@example.org&t=1#CANARY"
    private static let shownQuery = "?…&k=…&passkey=…&pin=…&email=…&t=…"

    /// Sends what is asked for, or redirects to a place where nothing is.
    private static func reply(to request: ScriptedRequest) -> ScriptedReply {
      switch request.path {
      case "/ok": .redirect(to: "/served?" + query)
      case "/served": .file(.pattern(size: 50_000), etag: "\"v1\"", for: request)
      case "/lost": .redirect(to: "/gone?" + query)
      default: ScriptedReply(404, ["Set-Cookie": "s=CANARY"])
      }
    }

    private static func url(_ server: ScriptedHTTPServer, _ path: String) -> String {
      "\(server.url(path))?\(query)".replacing("://", with: "://CANARY:CANARY@")
    }

    private static func shown(_ server: ScriptedHTTPServer, _ path: String) -> String {
      "\(server.url(path))\(shownQuery)".replacing("://", with: "://…@")
    }

    @Test func nothingSecretComesOut() async throws {
      try await DefectRun.with { request in
        Self.reply(to: request)
      } _: { run in
        func url(_ path: String) -> String { Self.url(run.server, path) }
        let folder = run.folder.path("out")
        let fields = ["Cookie: s=CANARY", "X-Api-Key: CANARY"].flatMap { ["-H", $0] }
        var outcomes: [Command.Outcome] = []
        for path in ["/ok", "/lost"] {
          for style in [[], ["--json"], ["--dry-run"], ["--dry-run", "--json"]] {
            outcomes.append(
              try await run.tool(["get", url(path), "-d", folder, "-H", "Authorization: x CANARY"] + fields + style))
          }
        }
        for style in [[], ["--json"]] {
          for command in ["list", "resume", "retry", "verify"] {
            outcomes.append(try await run.tool([command, "-d", folder] + style))
          }
          let queue = run.folder.path("queue" + style.joined())
          outcomes.append(try await run.tool(["add", url("/ok"), url("/lost"), "-d", queue] + style))
          outcomes.append(try await run.tool(["list", "-d", queue] + style))
          outcomes.append(try await run.tool(["work", "--until-idle", "-d", queue] + style))
          let worked = try #require(outcomes.last?.output)
          #expect(worked.contains("finished") && worked.contains(Self.shown(run.server, "/lost")), "\(worked)")
        }
        #expect(outcomes.contains { $0.output.contains(Self.shown(run.server, "/lost")) })

        // What is wrong is quoted.
        let invalid = url("/ok").replacing("@127", with: "@[127")
        let list = try run.folder.write(Array("\(invalid)\n".utf8), to: "list")
        for arguments in [
          ["get", invalid], ["get", invalid, "--json"], ["get", "-i", list], ["get", "-i", list, "--json"],
          ["add", "-i", list], ["get", url("/ok"), "--mirror", invalid],
          ["get", url("/ok"), "--checksum-file", invalid],
          ["remove", url("/ok")], ["restart", url("/ok")], ["list", url("/ok")],
        ] {
          let outcome = try await run.tool(arguments + ["-d", folder])
          #expect(outcome.status != 0, "\(arguments): \(outcome.everything)")
          outcomes.append(outcome)
        }
        try FileManager.default.removeItem(atPath: list)

        let proxy = Data("me:CANARY".utf8).base64EncodedString()
        #if LIBCURL
          let address = "127.0.0.1:\(run.server.port)"
          for options in [["-x", "http://\(address)", "-U", "me:CANARY"], ["-x", "http://me:CANARY@\(address)"]] {
            for style in [[], ["--json"], ["--dry-run"]] {
              outcomes.append(try await run.tool(["get", url("/proxied"), "-d", folder] + options + style))
            }
            outcomes.append(try await run.tool(["resume", "-d", folder] + options))
          }
          outcomes.append(try await run.tool(["get", url("/ok"), "-d", folder, "-x", "ftp://me:CANARY@\(address)"]))
          outcomes.append(try await run.tool(["get", url("/ok"), "-d", folder, "-U", "me:CANARY"]))
          let asked = run.server.requests.filter { $0.path.hasSuffix("/proxied") }
          #expect(!asked.isEmpty && asked.allSatisfy { $0.headers["Proxy-Authorization"] == "Basic \(proxy)" })
        #endif
        for outcome in outcomes {
          let text = outcome.output + outcome.errors
          #expect(!text.contains("CANARY") && !text.contains(proxy), "\(text)")
        }

        let first = try #require(run.server.requests.first { $0.path == "/ok" })
        #expect(first.headers["Authorization"] == "x CANARY" && first.headers["X-Api-Key"] == "CANARY")
        #expect(first.target == "/ok?" + Self.query.prefix { $0 != "#" })
        #if canImport(Glibc)
          #expect(try await !Self.attributes(in: run.folder.path("")).contains("CANARY"))
        #endif
        #expect(try run.folder.contents().allSatisfy { !$0.contains("CANARY") })
        for name in try run.folder.contents() {
          let text = (try? run.folder.read(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
          #expect(!text.contains("me:CANARY") && !text.contains(proxy), "\(name) has the password of the proxy")
        }
      }
    }

    @Test("--show-urls shows URLs as they were given; without it, the id tells those apart that differ in values only")
    func urlsThatAreAskedFor() async throws {
      try await DefectRun.with { _ in
        .status(404)
      } _: { run in
        let urls = (1...2).map { "\(run.server.url("/lost?id=\($0)"))" }
        let folder = ["-d", run.folder.path("out")]
        let hidden = try await run.tool(["get"] + urls + ["--json"] + folder)
        let shown = try await run.tool(["get"] + urls + ["--json", "--show-urls"] + folder)
        #expect(hidden.results.map(\.url) == Array(repeating: "\(run.server.url("/lost"))?id=…", count: 2))
        #expect(Set(shown.results.compactMap(\.url)) == Set(urls), "\(shown.everything)")
        let ids = Set(hidden.results.compactMap(\.id))
        #expect(ids.count == 2 && Set(shown.results.compactMap(\.id)) == ids)

        let plain = try await run.tool(["get"] + urls + folder)
        #expect(ids.allSatisfy { plain.output.contains("\thttpStatus\t\($0)\n") }, "\(plain.everything)")
        #expect(ids.allSatisfy { plain.errors.contains("/lost?id=… [\($0)]: ") }, "\(plain.everything)")
        for command in ["list", "retry"] {
          for style in [[], ["--json"]] {
            let outcome = try await run.tool([command, "--show-urls"] + style + folder)
            #expect(urls.allSatisfy { outcome.output.contains($0) }, "\(command): \(outcome.everything)")
          }
        }
      }
    }

    #if RPC
      @Test(
        "serve shows no secrets, except in replies about URLs to clients with its token", arguments: [[], ["--json"]])
      func serverAndItsStream(_ style: [String]) async throws {
        try await withScriptedServer({ Self.reply(to: $0) }) { server in
          let folder = try TemporaryFolder()
          let daemon = try await Daemon.start(folder.path, style)
          let token = try #require(daemon.token)
          let stream = try AttackConnection(daemon.place)
          await stream.send("GET /events?token=\(token) HTTP/1.1\r\nHost: localhost\r\n\r\n")
          #expect(try await stream.head()?.status == 200)

          var texts: [String] = []
          for (path, state) in [("/ok", "complete"), ("/lost", "error")] {
            let url = Self.url(server, path)
            let gid = try #require(try await daemon.call("aria2.addUri", [.text(url)]).text)
            try await daemon.wait(for: gid, state)
            let told = try await daemon.call("aria2.tellStatus", .text(gid))
            texts += ["downpipe", "errorMessage", "status"].compactMap { told[$0]?.description }
            // A client gets back what it has given.
            let uris = try await daemon.call("aria2.getUris", .text(gid))
            #expect(uris.list.first?["uri"]?.text?.contains("passkey=CANARY") == true, "\(uris)")
          }
          let metrics = try await daemon.place.send("GET", "/metrics?token=\(token)")
          texts.append(String(decoding: metrics.body, as: UTF8.self))
          let events = try #require(try await stream.text(until: #""state":"failed""#))
          #expect(await daemon.end(SIGTERM) == 0)
          let output = await daemon.everything()
          for text in [events, output] { #expect(text.contains(Self.shown(server, "/lost")), "\(text)") }
          texts += [events, output]
          for text in texts { #expect(!text.contains("CANARY") && !text.contains(token), "\(text)") }
        }
      }
    #endif

    /// The names and values of the extended attributes of all files in a folder.
    private static func attributes(in folder: String) async throws -> String {
      let script = """
        import os, sys
        for root, folders, files in os.walk(sys.argv[1]):
          for path in [os.path.join(root, name) for name in folders + files]:
            for name in os.listxattr(path, follow_symlinks=False):
              print(path, name, os.getxattr(path, name, follow_symlinks=False))
        """
      let outcome = try await Command("python3", ["-c", script, folder]).run()
      try #require(outcome.status == 0, "\(outcome.everything)")
      return outcome.output
    }
  }
}
