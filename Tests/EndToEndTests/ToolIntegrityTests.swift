import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// `--checksum-file`, `--signature`, `--pubkey` and `--keyring`.
  @Suite struct ToolIntegrityTests {
    private static let film = Array("film".utf8)

    private func sum(_ bytes: [UInt8], in folder: TemporaryFolder) async throws -> String {
      let path = try folder.write(bytes, to: "summed")
      let outcome = try await Command("sha256sum", [path]).run()
      return String(outcome.output.prefix(64))
    }

    @Test(arguments: [".sha256", "SHA256SUMS", "url", "local"])
    func checksumFiles(_ form: String) async throws {
      let made = try TemporaryFolder()
      let good = "\(try await sum(Self.film, in: made))  film\n"
      let bad = "\(try await sum([1], in: made))  film\n"
      for (text, status) in [(good, Int32(0)), (bad, 1), (good.replacing("film", with: "other"), 1)] {
        try await DefectRun.with { request in
          switch request.path {
          case "/film": .file(.bytes(Self.film), etag: "\"v1\"", for: request)
          case "/film.sha256", "/SHA256SUMS", "/sums": .file(.text(text), for: request)
          default: .status(404)
          }
        } _: { run in
          let value =
            switch form {
            case "url": "\(run.server.url("/sums"))"
            case "local": try run.folder.write(Array(text.utf8), to: "SHA256SUMS")
            default: form
            }
          let outcome = try await run.get(["/film"], ["--checksum-file", value, "--retry", "0"])
          #expect(outcome.status == status, "\(outcome.everything)")
          let code: String? = status == 0 ? nil : text == bad ? "digestMismatch" : "noChecksum"
          #expect(outcome.results.last?.error?.code == code, "\(outcome.everything)")
          #expect(FileManager.default.fileExists(atPath: run.folder.path("out/film")) == (status == 0))
        }
      }
    }

    @Test("--require-digest refuses what nothing has checked, and --json says what has checked the others")
    func requireDigest() async throws {
      let made = try TemporaryFolder()
      let sum = try await sum(Self.film, in: made)
      let digest = Data((0..<32).map { UInt8(sum.dropFirst(2 * $0).prefix(2), radix: 16) ?? 0 }).base64EncodedString()
      try await DefectRun.with { request in
        switch request.path {
        case "/film": .file(.bytes(Self.film), etag: "\"v1\"", for: request)
        case "/sent":
          .file(.bytes(Self.film), etag: "\"v1\"", for: request).setting(["Repr-Digest": "sha-256=:\(digest):"])
        case "/film.sha256": .file(.text("\(sum)  film\n"), for: request)
        default: .status(404)
        }
      } _: { run in
        let list = try run.folder.write(
          Array("\(run.server.url("/film"))\n\(run.server.url("/sent"))\n".utf8), to: "list")
        let outcome = try await run.get([], ["-i", list, "--require-digest"])
        #expect(outcome.status == 1 && outcome.results.count == 2, "\(outcome.everything)")
        let refused = outcome.results.first { $0.event == "failed" }
        #expect(
          refused?.url?.hasSuffix("/film") == true && refused?.error?.code == "unverified", "\(outcome.everything)")
        let sent = outcome.results.first { $0.event == "finished" }
        #expect(sent?.verified?.map(\.source) == ["server"] && sent?.verified?.first?.digest == sum)
        #expect(sent?.verified?.first?.algorithm == "sha-256")
        #expect(!FileManager.default.fileExists(atPath: run.folder.path("out/film")))
        // Nor with “resume”, which has the option from the ledger.
        let resumed = try await run.tool(["resume", "-d", run.folder.path("out"), "--json"])
        #expect(resumed.results.last?.error?.code == "unverified", "\(resumed.everything)")
        // What was received is not fetched again.
        let requests = run.server.requests.count
        let given = try await run.get(["/film"], ["--require-digest", "--checksum", "sha256=\(sum)"])
        #expect(given.status == 0 && given.results.last?.verified?.map(\.source) == ["request"], "\(given.everything)")
        #expect(run.server.requests.count == requests)
        // What was verified without the option is not fetched again for it.
        let again = try await run.get(["/sent"], ["--require-digest"])
        #expect(again.status == 0 && run.server.requests.count == requests, "\(again.everything)")
        let listed = try await run.tool(["list", "-d", run.folder.path("out"), "--json"])
        #expect(listed.toolLines.compactMap { $0.verified?.first?.source }.sorted() == ["request", "server"])

        let summed = try await run.get(["/film"], into: "sums", ["--require-digest", "--checksum-file", ".sha256"])
        #expect(summed.status == 0, "\(summed.everything)")
        #expect(summed.results.last?.verified?.map(\.source) == ["checksum file"])
        // A file that was there before was not checked.
        try run.folder.write(Array("lies".utf8), to: "reused/film")
        let reused = try await run.get(["/film"], into: "reused", ["--require-digest", "--on-conflict", "reuse"])
        #expect(reused.status == 1 && reused.results.last?.error?.code == "unverified", "\(reused.everything)")
        // One that an earlier command has left unchecked does not count as finished.
        let plain = try await run.get(["/film"], into: "plain")
        #expect(plain.status == 0 && plain.results.last?.verified == nil, "\(plain.everything)")
        let required = try await run.get(["/film"], into: "plain", ["--require-digest"])
        #expect(required.status == 1 && required.results.last?.error?.code == "unverified", "\(required.everything)")
      }
    }

    @Test("downpipe verify knows the digest of a checksum file")
    func verified() async throws {
      let made = try TemporaryFolder()
      let sums = "\(try await sum(Self.film, in: made))  film\n"
      try await DefectRun.with { request in
        request.path == "/film"
          ? .file(.bytes(Self.film), etag: "\"v1\"", for: request) : .file(.text(sums), for: request)
      } _: { run in
        let outcome = try await run.get(["/film"], ["--checksum-file", "SHA256SUMS"])
        #expect(outcome.status == 0, "\(outcome.everything)")
        let verify = ["verify", "-d", run.folder.path("out")]
        let intact = try await run.tool(verify)
        #expect(intact.status == 0 && !intact.errors.contains("not verified"), "\(intact.everything)")
        try run.folder.write(Self.film.map { $0 ^ 1 }, to: "out/film")
        let damaged = try await run.tool(verify)
        #expect(damaged.status == 1, "\(damaged.everything)")
        let repaired = try await run.tool(verify + ["--repair"])
        #expect(repaired.status == 0, "\(repaired.everything)")
        #expect(try run.folder.read("out/film") == Self.film)
      }
    }

    @Test("a file that is there already was not checked")
    func existingFiles() async throws {
      let made = try TemporaryFolder()
      let sums = "\(try await sum(Self.film, in: made))  film\n"
      try await DefectRun.with { request in
        request.path == "/film"
          ? .file(.bytes(Self.film), etag: "\"v1\"", for: request) : .file(.text(sums), for: request)
      } _: { run in
        for (present, names) in [(Self.film, ["film"]), (Array("lies".utf8), ["film", "film (1)"])] {
          let folder = "out\(names.count)"
          try run.folder.write(present, to: folder + "/film")
          let outcome = try await run.tool([
            "get", "\(run.server.url("/film"))", "-d", run.folder.path(folder), "--json", "--on-conflict", "reuse",
            "--checksum-file", "SHA256SUMS",
          ])
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(try run.folder.read("\(folder)/\(names.last ?? "")") == Self.film)
          #expect(try run.folder.read("\(folder)/film") == present)
        }
        #expect(run.server.requests.map(\.path).filter { $0 == "/SHA256SUMS" }.count == 2)
      }
    }

    @Test func aChecksumFileThatIsMissingIsAnError() async throws {
      try await DefectRun.with { request in
        request.path == "/film" ? .file(.bytes(Self.film), for: request) : .status(404)
      } _: { run in
        let outcome = try await run.get(["/film"], ["--checksum-file", "SHA256SUMS"])
        #expect(outcome.status == 1 && outcome.results.last?.error?.code == "noChecksum", "\(outcome.everything)")
        let local = try await run.get(["/film"], ["--checksum-file", "./no-such-file"])
        #expect(local.status == 2 && local.errors.contains("--checksum-file"), "\(local.everything)")
      }
    }

    #if LIBSODIUM
      @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/minisign"), "there is no minisign"))
      func minisign() async throws {
        let made = try TemporaryFolder()
        _ = try made.write(Self.film, to: "film")
        let script = """
          cd "$0" && minisign -G -f -W -p own.pub -s own.key && minisign -G -f -W -p other.pub -s other.key \
          && minisign -S -s own.key -m film
          """
        let signed = try await Command("bash", ["-c", script, made.path]).run()
        try #require(signed.status == 0, "\(signed.everything)")
        let signature = try made.read("film.minisig")
        let key = String(
          String(decoding: try made.read("own.pub"), as: UTF8.self).split(separator: "\n").last ?? "")
        try await DefectRun.with { request in
          switch request.path {
          case "/film": .file(.bytes(Self.film), etag: "\"v1\"", for: request)
          case "/film.minisig": .file(.bytes(signature), for: request)
          default: .status(404)
          }
        } _: { run in
          let local = made.path("film.minisig")
          for (name, options) in [
            ("a", ["--pubkey", key]), ("b", ["--pubkey", made.path("own.pub"), "--signature", "auto"]),
            ("c", ["--pubkey", key, "--signature", local]), ("d", ["--pubkey", key, "--signature", ".minisig"]),
          ] {
            let outcome = try await run.get(["/film"], into: name, options)
            #expect(outcome.status == 0, "\(options) \(outcome.everything)")
          }
          let requests = run.server.requests.count
          let other = try await run.get(["/film"], into: "e", ["--pubkey", made.path("other.pub")])
          #expect(other.status == 1 && other.results.last?.error?.code == "badSignature", "\(other.everything)")
          #expect(try !run.folder.contents().contains("e/film"))
          let missing = try await run.get(["/film"], into: "f", ["--pubkey", key, "--signature", ".sig"])
          #expect(missing.results.last?.error?.code == "noSignature", "\(missing.everything)")
          // A missing key is noticed before anything is fetched.
          let before = run.server.requests.count
          #expect(before > requests)
          for options in [["--signature", "auto"], ["--pubkey", "no-such-file"], ["--keyring", "no-such-file"]] {
            let wrong = try await run.get(["/film"], into: "g", options)
            #expect(wrong.status == 2, "\(wrong.everything)")
          }
          #expect(run.server.requests.count == before)
        }
      }
    #endif

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/gpgv"), "there is no gpgv"))
    func openPGP() async throws {
      let made = try TemporaryFolder()
      _ = try made.write(Self.film, to: "film")
      let script = """
        cd "$0" && export GNUPGHOME="$0/home" && mkdir -m 700 home \
        && gpg --batch --quiet --passphrase '' --quick-generate-key test@example.org ed25519 sign never \
        && gpg --batch --quiet --export > ring.gpg && gpg --batch --quiet --armor --detach-sign film; \
        status=$?; gpgconf --kill all; exit $status
        """
      let signed = try await Command("bash", ["-c", script, made.path]).run()
      try #require(signed.status == 0, "\(signed.everything)")
      let signature = try made.read("film.asc")
      let content = Watched(Self.film)
      try await DefectRun.with { request in
        request.path == "/film"
          ? .file(.bytes(content.value), for: request) : .file(.bytes(signature), for: request)
      } _: { run in
        let options = ["--keyring", made.path("ring.gpg"), "--retry", "0"]
        let outcome = try await run.get(["/film"], options)
        #expect(outcome.status == 0, "\(outcome.everything)")
        content.update { $0 = [1] }
        let wrong = try await run.get(["/film"], into: "wrong", options)
        #expect(wrong.status == 1 && wrong.results.last?.error?.code == "badSignature", "\(wrong.everything)")
        #expect(try !run.folder.contents().contains("wrong/film"))
      }
    }
  }
}
