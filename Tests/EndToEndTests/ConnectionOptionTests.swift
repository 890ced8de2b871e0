#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// Proxies, addresses, redirects and limits.
    @Suite struct ConnectionOptionTests {
      private static let film = "http://film.test/film"

      /// A proxy gets the URL in absolute form, and serves the file itself.
      private func withProxy(_ body: (DefectRun) async throws -> Void) async throws {
        try await DefectRun.with({ .file(.text("film"), etag: "\"v1\"", for: $0) }, body)
      }

      private func get(
        _ run: DefectRun, _ options: [String], shell: String = ":", _ url: String = film
      ) async throws -> Command.Outcome {
        try await run.tool(
          ["get", url, "-d", run.folder.path("out"), "--json", "--retry", "0"] + options, shell: shell)
      }

      @Test("A proxy is an option, or a variable that --no-proxy overrides")
      func proxy() async throws {
        try await withProxy { run in
          let proxy = "127.0.0.1:\(run.server.port)"
          #expect(try await get(run, ["--proxy", proxy]).status == 0)
          #expect(try await get(run, [], shell: "export http_proxy=http://\(proxy)", Self.film + "2").status == 0)
          #expect(run.server.requests.map(\.target) == [Self.film, Self.film + "2"])
          let direct = try await get(run, ["--no-proxy"], shell: "export http_proxy=http://\(proxy)", Self.film + "3")
          #expect(direct.results.last?.error?.code == "hostNotFound", "\(direct.everything)")
          #expect(run.server.requests.count == 2)
        }
      }

      @Test("A proxy and a server ask for Digest, with names in their URLs", arguments: ["option", "url", "variable"])
      func digest(place: String) async throws {
        try await DefectRun.with { request in
          guard request.headers["Proxy-Authorization"]?.hasPrefix("Digest username=\"me\",") == true else {
            return ScriptedReply(407, ["Proxy-Authenticate": "Digest realm=\"p\", nonce=\"1\""])
          }
          guard request.headers["Authorization"]?.hasPrefix("Digest username=\"you\",") == true else {
            return ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"s\", nonce=\"2\""])
          }
          return .file(.text("film"), etag: "\"v1\"", for: request)
        } _: { run in
          let address = "127.0.0.1:\(run.server.port)"
          let (options, shell) =
            switch place {
            case "option": (["--proxy", address, "--proxy-user", "me:canary"], ":")
            case "url": (["--proxy", "http://me:canary@\(address)"], ":")
            default: ([], "export http_proxy=http://me:canary@\(address)")
            }
          let outcome = try await get(
            run, options + ["--auth", "digest", "--proxy-auth", "digest"], shell: shell,
            "http://you:canary@film.test/film")
          #expect(outcome.status == 0 && !outcome.everything.contains("canary"), "\(outcome.everything)")
          #expect(run.server.requests.count == 3)
        }
      }

      @Test("The proxy gets its own password only", arguments: ["option", "url", "variable"])
      func proxyUser(place: String) async throws {
        let password = "canary-of-the-proxy"
        let basic = "Basic " + Data("me:\(password)".utf8).base64EncodedString()
        try await withProxy { run in
          let proxy = "127.0.0.1:\(run.server.port)"
          let outcome =
            switch place {
            case "option": try await get(run, ["-x", "http://" + proxy, "-U", "me:\(password)"])
            case "url": try await get(run, ["-x", "http://me:\(password)@" + proxy])
            default:
              try await get(
                run, ["-x", proxy, "-U", "me"], shell: "export DOWNPIPE_PROXY_PASSWORD=\(password)")
            }
          #expect(outcome.status == 0, "\(outcome.everything)")
          let request = try #require(run.server.requests.first)
          #expect(request.headers["Proxy-Authorization"] == basic && request.headers["Authorization"] == nil)
          let table = try await run.tool(["list", "--json", "-d", run.folder.path("out")])
          #expect(!(outcome.output + outcome.errors + table.output).contains(password))
          for name in try run.folder.contents() {
            let text = (try? run.folder.read(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
            #expect(!text.contains(password), "\(name) has the password")
          }
        }
      }

      @Test("--resolve connects to the address, and sends the name")
      func resolve() async throws {
        try await withProxy { run in
          let url = "http://film.test:\(run.server.port)/film"
          let outcome = try await get(run, ["--resolve", "film.test:\(run.server.port):127.0.0.1"], url)
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(run.server.requests.first?.headers["Host"] == "film.test:\(run.server.port)")
        }
      }

      @Test("As many redirects as allowed are followed", arguments: [(0, false), (1, false), (2, true)])
      func redirects(maximum: Int, isEnough: Bool) async throws {
        try await DefectRun.with { request in
          switch request.path {
          case "/a": .redirect(to: "/b")
          case "/b": .redirect(to: "/film")
          default: .file(.text("film"), etag: "\"v1\"", for: request)
          }
        } _: { run in
          let outcome = try await run.get(["/a"], ["--max-redirects", "\(maximum)", "--retry", "0"])
          #expect((outcome.status == 0) == isEnough, "\(outcome.everything)")
          #expect(try run.folder.contents().contains { $0.hasSuffix("film") } == isEnough)
        }
      }

      @Test("A larger file is refused", arguments: [true, false])
      func maximumSize(isKnown: Bool) async throws {
        let content = ScriptedContent.pattern(size: 300_000)
        try await DefectRun.with { request in
          isKnown
            ? .file(content, etag: "\"v1\"", for: request) : .chunked([content.allBytes, content.allBytes])
        } _: { run in
          let outcome = try await run.get(["/film"], ["--max-size", "200k"])
          #expect(outcome.results.last?.error?.code == "tooLarge", "\(outcome.everything)")
          #expect(try !run.folder.contents().contains("out/film"))
          let enough = try await run.get(["/film"], into: "other", ["--max-size", "1M"])
          #expect(enough.status == 0, "\(enough.everything)")
        }
      }

      @Test("A content coding that was not asked for is removed, or kept", arguments: [false, true])
      func contentCoding(isKept: Bool) async throws {
        let coded = Array(try #require(Data(base64Encoded: "H4sIAAAAAAACA0vLzMkFACK+RIIEAAAA")))
        try await DefectRun.with { _ in
          ScriptedReply(200, ["Content-Encoding": "gzip"], body: .bytes(coded))
        } _: { run in
          let outcome = try await run.get(["/film.txt"], isKept ? ["--keep-encoded"] : [])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.published(by: outcome) == (isKept ? coded : Array("film".utf8)))
        }
      }

      @Test("Coded bytes that are published are named, and the file is finished", arguments: ["text", "json", "kept"])
      func keptCoding(form: String) async throws {
        try await DefectRun.with { _ in
          ScriptedReply(200, ["Content-Encoding": "compress"], body: .text("film"))
        } _: { run in
          let options = ["text": ["--quiet"], "json": ["--json"], "kept": ["--keep-encoded"]][form] ?? []
          let outcome = try await run.tool(
            ["get", "\(run.server.url("/film"))", "-d", run.folder.path("out")] + options)
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("out/film") == Array("film".utf8))
          #expect(outcome.errors.contains("“compress”") == (form == "text"), "\(outcome.everything)")
          #expect(outcome.output.contains("\"event\":\"notice\"") == (form == "json"), "\(outcome.everything)")
        }
      }

      @Test("Fields of the connection are ignored, and the command says so")
      func fieldsOfTheConnection() async throws {
        try await withProxy { run in
          let outcome = try await run.get(["/film"], ["-H", "Connection: close, X-A", "-H", "X-B: 1"])
          #expect(outcome.status == 0 && outcome.errors.contains("Connection is ignored"), "\(outcome.everything)")
          #expect(run.server.requests.allSatisfy { $0.headers["Connection"] == nil && $0.headers["X-B"] == "1" })
        }
      }

      @Test("Links from strangers do not lead into private networks", arguments: ["127.0.0.1", "localhost", "[::1]"])
      func untrusted(host: String) async throws {
        try await withProxy { run in
          let outcome = try await get(
            run, ["--untrusted"], shell: "export http_proxy=127.0.0.1:\(run.server.port)",
            "http://\(host):\(run.server.port)/film")
          #expect(outcome.status == 1 && outcome.results.last?.error != nil, "\(outcome.everything)")
          let usual = try await get(run, ["--untrusted"], "http://\(host)/film")
          #expect(usual.results.last?.error?.code == "privateAddress", "\(usual.everything)")
          #expect(run.server.activity.connections == 0)
        }
      }

      @Test("Later commands keep the rules of --untrusted, for these downloads only", arguments: [false, true])
      func untrustedLater(isAddedAgain: Bool) async throws {
        try await DefectRun.with { request in
          request.path == "/own" && request.number == 1
            ? .status(503) : .file(.text("film"), etag: "\"v1\"", for: request)
        } _: { run in
          // The port and the address are refused, each for a reason of its own.
          let port = "\(run.server.url("/film"))"
          let links = [port, "http://127.0.0.1/film"]
          for link in links { #expect(try await get(run, ["--untrusted"], link).status == 1) }
          #expect(try await get(run, [], "\(run.server.url("/own"))").status == 1)
          #expect(run.server.requests.map(\.path) == ["/own"])

          let into = ["-d", run.folder.path("out"), "--json", "--retry", "0"]
          let later = try await run.tool(isAddedAgain ? ["get"] + links + into : ["resume"] + into)
          #expect(later.status == 1 && later.errors.contains("2 downloads were added with --untrusted"), "\(later)")
          let errors = Dictionary(
            later.results.compactMap { line in line.url.map { ($0, line.error?.code) } }, uniquingKeysWith: { $1 })
          #expect(errors["http://127.0.0.1/film"] == "privateAddress", "\(later.everything)")
          #expect(errors[port] != nil && errors[port] != .some(nil), "\(later.everything)")
          #expect(run.server.requests.map(\.path) == (isAddedAgain ? ["/own"] : ["/own", "/own"]))
          let forecast = try await get(run, ["--dry-run"], port)
          let other = try await run.tool(["resume", "--source", "urlsession"] + into)
          #expect(forecast.status == 1 && other.status == 1, "\(forecast.everything) \(other.everything)")
          #expect(!run.server.requests.contains { $0.path == "/film" })

          // The user takes it back.
          let id = try #require(forecast.toolLines.first?.id)
          #expect(try await run.tool(["remove", id, "-d", run.folder.path("out")]).status == 0)
          let trusted = try await get(run, [], port)
          #expect(trusted.status == 0 && !trusted.errors.contains("--untrusted"), "\(trusted.everything)")
        }
      }
    }
  }
#endif
