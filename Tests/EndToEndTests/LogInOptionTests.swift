#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// `--user`, `--bearer`, `--netrc-file` and `--cookie-jar` against servers on two origins.
    @Suite struct LogInOptionTests {
      private static let password = "correct-horse-battery"
      private static let basic = "Basic " + Data("me:\(password)".utf8).base64EncodedString()

      /// Serves `/film` to requests with the field, and asks the others to log in.
      private static func guarded(_ field: String, _ request: ScriptedRequest) -> ScriptedReply {
        guard request.headers["Authorization"] == field else {
          return ScriptedReply(401, ["WWW-Authenticate": "Basic realm=\"films\""])
        }
        return .file(.text("film"), etag: "\"v1\"", for: request)
      }

      /// The places where a secret must not be: all output and all files but those of the user.
      private func expectNoSecret(
        _ secrets: [String], _ run: DefectRun, _ outcomes: [Command.Outcome], except own: Set<String> = []
      ) throws {
        for secret in secrets {
          for outcome in outcomes { #expect(!(outcome.output + outcome.errors).contains(secret)) }
          for name in try run.folder.contents() where !own.contains(name) {
            guard let bytes = try? run.folder.read(name) else { continue }
            #expect(!String(decoding: bytes, as: UTF8.self).contains(secret), "\(name) has the password")
          }
        }
      }

      @Test(
        "A password comes from the option, a file or a variable, and is in no output and no file",
        arguments: ["option", "file", "variable"])
      func user(from place: String) async throws {
        try await DefectRun.with {
          Self.guarded(Self.basic, $0)
        } _: { run in
          let file = try run.folder.write(Array("\(Self.password)\n".utf8), to: "password")
          let (options, shell) =
            switch place {
            case "option": (["--user", "me:\(Self.password)"], ":")
            case "file": (["--user", "me", "--password-file", file], ":")
            default: (["-u", "me"], "export DOWNPIPE_PASSWORD=\(Self.password)")
            }
          let film = try await run.get(["/film"], options, shell: shell)
          #expect(film.status == 0, "\(film.everything)")
          let dry = try await run.get(["/other"], options + ["--dry-run"], shell: shell)
          #expect(dry.status == 0, "\(dry.everything)")
          let table = try await run.tool(["list", "--json", "-d", run.folder.path("out")])
          let refused = try await run.get(
            ["/film"], into: "wrong", ["--user", "you:\(Self.password)", "--retry", "0"])
          #expect(refused.results.last?.error?.code == "httpStatus", "\(refused.everything)")
          try expectNoSecret(
            [Self.password, String(Self.basic.dropFirst(6))], run, [film, dry, table, refused], except: ["password"])
        }
      }

      @Test("Without a password and without a terminal, the command says what to do")
      func noPassword() async throws {
        try await DefectRun.with {
          Self.guarded(Self.basic, $0)
        } _: { run in
          // A session of its own has no terminal.
          let outcome = try await Command.downpipe(
            ["\(run.server.url("/film"))", "-d", run.folder.path("out"), "-u", "me"], by: ["setsid", "-w"]
          ).run()
          #expect(outcome.status == 2 && outcome.errors.contains("--password-file"), "\(outcome.everything)")
          #expect(run.server.requests.isEmpty)
        }
      }

      @Test("The command asks on the terminal, and shows nothing of what is typed")
      func prompt() async throws {
        try await DefectRun.with {
          Self.guarded(Self.basic, $0)
        } _: { run in
          let script = """
            import os, pty, sys
            pid, terminal = pty.fork()
            if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
            seen = b""
            while b"Password" not in seen: seen += os.read(terminal, 1000)
            os.write(terminal, b"wrong\\x15correct-horse-batterx\\x7fy\\n")
            while True:
              try: data = os.read(terminal, 1000)
              except OSError: break
              if not data: break
              seen += data
            print(seen.decode())
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            """
          let outcome = try await Command.downpipe(
            ["\(run.server.url("/film"))", "-d", run.folder.path("out"), "--json", "-q", "-u", "me"],
            by: ["python3", "-c", script]
          ).run()
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(outcome.output.contains("Password of me (--user): "), "\(outcome.everything)")
          #expect(!outcome.output.contains("batter"), "\(outcome.everything)")
        }
      }

      @Test("A redirect to another origin does not get it, and one back does", arguments: ["curl", "urlsession"])
      func redirects(_ source: String) async throws {
        let other = try await ScriptedHTTPServer.start { request in
          .redirect(to: request.headers["X-Back"] ?? request.target.replacing("/to?", with: ""))
        }
        let port = other.port
        try await DefectRun.with { request in
          guard request.path == "/film" else { return Self.guarded(Self.basic, request) }
          return .redirect(to: "http://127.0.0.1:\(port)/to?http://\(request.headers["Host"] ?? "")/end")
        } _: { run in
          let outcome = try await run.get(["/film"], ["-u", "me:\(Self.password)", "--source", source])
          if source == "curl" {
            #expect(outcome.status == 0, "\(outcome.everything)")
            #expect(run.server.requests.map { $0.headers["Authorization"] } == [Self.basic, Self.basic])
          }
          #expect(other.requests.map { $0.headers["Authorization"] } == [nil])
        }
        await other.shutdown()
      }

      @Test("Digest sends a proof, and never the password", arguments: ["digest", "any"])
      func digest(_ method: String) async throws {
        try await DefectRun.with { request in
          guard let field = request.headers["Authorization"] else {
            return ScriptedReply(401, ["WWW-Authenticate": "Digest realm=\"films\", nonce=\"n1\", qop=\"auth\""])
          }
          let isProof = field.hasPrefix("Digest ") && field.contains("username=\"me\"") && field.contains("response=")
          return isProof ? .file(.text("film"), etag: "\"v1\"", for: request) : .status(403)
        } _: { run in
          let outcome = try await run.get(["/film"], ["-u", "me:\(Self.password)", "--auth", method])
          #expect(outcome.status == 0, "\(outcome.everything)")
          let sent = run.server.requests.compactMap { $0.headers["Authorization"] }
          #expect(sent.count == 1 && !sent[0].contains(Self.password) && sent[0].contains("realm=\"films\""), "\(sent)")
          let list = try run.folder.write(Array("\(run.server.url("/second"))\n".utf8), to: "list")
          let second = try await run.get([], ["-i", list, "-u", "me:\(Self.password)", "--auth", method])
          #expect(second.status == 0, "\(second.everything)")
        }
      }

      @Test("A token comes from the command line or a file", arguments: [false, true])
      func bearer(isInFile: Bool) async throws {
        try await DefectRun.with {
          Self.guarded("Bearer \(Self.password)", $0)
        } _: { run in
          let file = try run.folder.write(Array("\(Self.password)\n".utf8), to: "token")
          let outcome = try await run.get(["/film"], ["--bearer", isInFile ? "@" + file : Self.password])
          #expect(outcome.status == 0, "\(outcome.everything)")
          try expectNoSecret([Self.password], run, [outcome], except: ["token"])
        }
      }

      @Test("The ledger has no password: resume needs it again, and other hosts do not get it")
      func resume() async throws {
        let other = try await ScriptedHTTPServer.start { _ in .status(503) }
        let content = ScriptedContent.pattern(size: 300_000)
        try await DefectRun.with { request in
          guard request.headers["Authorization"] == Self.basic else { return .status(401) }
          let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.truncated(after: 100_000) : reply
        } _: { run in
          let first = try await run.get(["/film"], ["-u", "me:\(Self.password)", "--retry", "0"])
          let public1 = try await run.tool(
            ["get", "\(other.url("/public"))", "-d", run.folder.path("out"), "--retry", "0", "-q"])
          #expect(first.status == 1 && public1.status == 1, "\(first.everything)")
          let into = ["-d", run.folder.path("out"), "--json", "--retry", "0"]
          let without = try await run.tool(["resume"] + into)
          #expect(without.results.contains { $0.error?.message.contains("401") ?? false }, "\(without.everything)")
          let with = try await run.tool(["resume", "-u", "me:\(Self.password)"] + into)
          let film = with.results.first { $0.url?.hasSuffix("/film") ?? false }
          #expect(film?.event == "finished" && film?.resumedFrom ?? 0 > 0, "\(with.everything)")
          #expect(other.requests.count == 3 && other.requests.allSatisfy { $0.headers["Authorization"] == nil })
          try expectNoSecret([Self.password, String(Self.basic.dropFirst(6))], run, [first, without, with])
        }
        await other.shutdown()
      }

      @Test("--header and --user do not both log in")
      func twoWays() async throws {
        let outcome = try await Command.downpipe(["http://a.test/1", "-H", "Authorization: x", "-u", "a:b"]).run()
        #expect(outcome.status == 2 && outcome.errors.contains("remove one"), "\(outcome.everything)")
      }

      @Test("A netrc file has names for hosts; user information in a URL wins")
      func netrc() async throws {
        try await DefectRun.with {
          .file(.text("film"), etag: "\"v1\"", for: $0)
        } _: { run in
          let file = try run.folder.write(
            Array("machine 127.0.0.1 login me password \(Self.password)\nmachine other.test login x password y\n".utf8),
            to: "netrc")
          let url = "\(run.server.url("/film"))"
          let outcome = try await run.tool(
            ["get", url, url.replacing("//", with: "//you:other@", maxReplacements: 1) + "2", "-d"]
              + [run.folder.path("out"), "--netrc-file", file, "--json"])
          #expect(outcome.status == 0, "\(outcome.everything)")
          let sent = Dictionary(
            uniqueKeysWithValues: run.server.requests.map { ($0.path, $0.headers["Authorization"]) })
          let own = "Basic " + Data("you:other".utf8).base64EncodedString()
          #expect(sent == ["/film": Self.basic, "/film2": own])
          let home = try await run.tool(
            ["get", url + "3", "-d", run.folder.path("out"), "--netrc"],
            shell: "cp '\(file)' '\(run.folder.path)/.netrc'; export HOME='\(run.folder.path)'")
          #expect(home.status == 0, "\(home.everything)")
          #expect(run.server.requests.last?.headers["Authorization"] == Self.basic)
          try expectNoSecret([Self.password], run, [outcome, home], except: ["netrc", ".netrc"])
        }
      }

      @Test("A cookie jar keeps cookies from one command to the next")
      func cookies() async throws {
        try await DefectRun.with { request in
          let reply = ScriptedReply.file(.text("film"), etag: "\"v1\"", for: request)
          return request.path == "/log-in"
            ? reply.setting(["Set-Cookie": "session=canary-cookie; Max-Age=3600; Path=/; HttpOnly"]) : reply
        } _: { run in
          let jar = ["--cookie-jar", run.folder.path("jar")]
          let first = try await run.get(["/log-in"], jar)
          let second = try await run.get(["/film"], jar)
          #expect(first.status == 0 && second.status == 0, "\(first.everything) \(second.everything)")
          #expect(run.server.requests.map { $0.headers["Cookie"] } == [nil, "session=canary-cookie"])
          let text = String(decoding: try run.folder.read("jar"), as: UTF8.self)
          #expect(text.hasPrefix("# Netscape HTTP Cookie File") && text.contains("canary-cookie"), "\(text)")
          let mode = try FileManager.default.attributesOfItem(atPath: run.folder.path("jar"))[.posixPermissions]
          #expect(mode as? Int == 0o600)
          let third = try await run.get(["/plain"])
          #expect(run.server.requests.last?.headers["Cookie"] == nil)
          try expectNoSecret(["canary-cookie"], run, [first, second, third], except: ["jar"])
        }
      }

      @Test("A file that is no cookie jar is refused before anything is fetched, and left alone")
      func notCookies() async throws {
        try await DefectRun.with {
          .file(.text("film"), etag: "\"v1\"", for: $0).setting(["Set-Cookie": "session=canary-cookie; Path=/"])
        } _: { run in
          let text = #"[{"domain":"127.0.0.1","name":"auth","value":"canary-cookie"}]"#
          let path = try run.folder.write(Array(text.utf8), to: "cookies.json")
          let outcome = try await run.get(["/film"], ["--cookie-jar", path])
          #expect(
            outcome.status == 2 && outcome.errors.contains("cookies.json is not a file with cookies"), "\(outcome)")
          #expect(try run.folder.read("cookies.json") == Array(text.utf8))
          #expect(run.server.requests.isEmpty)
          try expectNoSecret(["canary-cookie"], run, [outcome], except: ["cookies.json"])
        }
      }
    }
  }
#endif
