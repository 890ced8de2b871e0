#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// The options about TLS, with a real nginx.
    @Suite struct TLSOptionTests {
      /// A certificate that signed itself, and its key.
      private struct Identity {
        let certificate: String
        let key: String

        init(in folder: TemporaryFolder, name: String) async throws {
          (certificate, key) = (folder.path("\(name).pem"), folder.path("\(name)-key.pem"))
          let made = try await Command(
            "openssl",
            [
              "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
              "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
            ]
          ).run()
          try #require(made.status == 0, "openssl is needed: \(made.errors)")
        }

        /// The pin of the key, as `--pinned-public-key` takes it.
        func pin() async throws -> String {
          let digest = try await Command(
            "bash",
            [
              "-c",
              "openssl pkey -in \"$0\" -pubout -outform der | openssl dgst -sha256 -binary | openssl base64 -A", key,
            ]
          ).run()
          return "sha256//" + digest.output
        }
      }

      private struct Run {
        let folder: TemporaryFolder
        let server: NginxServer
        let identity: Identity

        init(more: (Identity) -> String = { _ in "" }) async throws {
          folder = try TemporaryFolder()
          identity = try await Identity(in: folder, name: "server")
          server = try await NginxServer(
            certificate: identity.certificate, key: identity.key, more: more(identity))
          try server.add("film", Array("film".utf8))
        }

        func get(_ options: [String]) async throws -> Command.Outcome {
          try await Command.downpipe(
            ["get", "https://localhost:\(server.port)/files/film", "-d", folder.path("out"), "--ledger", "none"]
              + ["--json", "--retry", "0"] + options
          ).run()
        }
      }

      @Test("A server is trusted by its certificate, and by no other")
      func certificates() async throws {
        let run = try await Run()
        let other = try await Identity(in: run.folder, name: "other")
        #expect(try await run.get([]).results.last?.error?.code == "tls")
        #expect(try await run.get(["--ca-certificate", other.certificate]).results.last?.error?.code == "tls")
        let trusted = try await run.get(["--ca-certificate", run.identity.certificate])
        #expect(trusted.status == 0, "\(trusted.everything)")
        #expect(try run.server.requests().count == 1)
      }

      @Test("--insecure says what it does, and in red on a terminal")
      func insecure() async throws {
        let run = try await Run()
        let outcome = try await run.get(["--insecure", "-q"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(
          outcome.errors.contains("servers are not checked") && !outcome.errors.contains("\u{1B}"),
          "\(outcome.everything)")
        let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
        let terminal = try await Command.downpipe(
          ["https://localhost:\(run.server.port)/files/film", "-d", run.folder.path("two"), "-k"],
          by: ["python3", "-c", script]
        ).run()
        #expect(terminal.status == 0, "\(terminal.everything)")
        #expect(
          terminal.output.contains(#/\x1B\[1;31mdownpipe: --insecure: servers are not checked/#),
          "\(terminal.everything)")
      }

      @Test("A pinned key must match")
      func pins() async throws {
        let run = try await Run()
        let trust = ["--ca-certificate", run.identity.certificate]
        let other = try await Identity(in: run.folder, name: "other").pin()
        let wrong = try await run.get(trust + ["--pinned-public-key", other])
        #expect(wrong.results.last?.error?.code == "tls", "\(wrong.everything)")
        let right = try await run.get(
          trust + ["--pinned-public-key", other, "--pinned-public-key", try await run.identity.pin()])
        #expect(right.status == 0, "\(right.everything)")
      }

      @Test("A client certificate, with its key in the same file or in another one", arguments: [true, false])
      func clientCertificate(isOneFile: Bool) async throws {
        let run = try await Run { "ssl_verify_client on; ssl_client_certificate \($0.certificate);" }
        let trust = ["--ca-certificate", run.identity.certificate, "--http1.1"]
        let without = try await run.get(trust)
        #expect(without.status == 1, "\(without.everything)")
        var options = ["--cert", run.identity.certificate, "--key", run.identity.key]
        if isOneFile {
          let both = try run.folder.read("server.pem") + run.folder.read("server-key.pem")
          options = ["--cert", try run.folder.write(both, to: "both.pem")]
        }
        let with = try await run.get(trust + options)
        #expect(with.status == 0, "\(with.everything)")
      }

      @Test("An older version of TLS is refused")
      func versions() async throws {
        let run = try await Run { _ in "ssl_protocols TLSv1.2;" }
        let trust = ["--ca-certificate", run.identity.certificate]
        let newer = try await run.get(trust + ["--tls-min", "1.3"])
        #expect(newer.results.last?.error?.code == "tls", "\(newer.everything)")
        #expect(try await run.get(trust + ["--tls-min", "1.2"]).status == 0)
      }

      @Test("A redirect from https: to http: needs an option")
      func insecureRedirects() async throws {
        let plain = try await ScriptedHTTPServer.start { .file(.text("film"), etag: "\"v1\"", for: $0) }
        let run = try await Run { _ in "location = /files/film { return 302 http://127.0.0.1:\(plain.port)/film; }" }
        let trust = ["--ca-certificate", run.identity.certificate]
        let refused = try await run.get(trust)
        #expect(refused.results.last?.error?.code == "insecureRedirect", "\(refused.everything)")
        #expect(plain.requests.isEmpty)
        let followed = try await run.get(trust + ["--allow-insecure-redirects"])
        #expect(followed.status == 0, "\(followed.everything)")
        await plain.shutdown()
      }
    }
  }
#endif
