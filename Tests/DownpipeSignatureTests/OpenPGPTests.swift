#if os(Linux) || os(macOS)
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeSignature

  /// Signatures of the program gpg.
  @Suite(
    .endsHangs, .serialized, .enabled(if: Programs.gpg != nil && Programs.gpgv != nil, "there is no gpg, or no gpgv"))
  struct OpenPGPTests {
    private let bytes = DownloadFixtures.pattern(size: 300_000)
    private let folder: TemporaryFolder
    private let keyring: String

    init() throws {
      // The path of the socket of gpg's agent must be short.
      folder = try TemporaryFolder()
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
      _ = try folder.write(bytes, to: "film.mkv")
      keyring = folder.path("keys.gpg")
      try Self.makeKey("own@example.org", in: folder)
      try gpg("--output", "keys.gpg", "--export", "own@example.org")
    }

    private static func makeKey(_ name: String, in folder: TemporaryFolder, expires: String = "never") throws {
      try Programs.run(
        Programs.gpg,
        ["--batch", "--quiet", "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", expires],
        in: folder.path)
    }

    private func gpg(_ arguments: String...) throws {
      try Programs.run(Programs.gpg, ["--batch", "--yes", "--quiet", "--passphrase", ""] + arguments, in: folder.path)
    }

    private func sign(_ key: String = "own@example.org", _ form: String = "--armor", _ options: String...) throws
      -> [UInt8]
    {
      try Programs.run(
        Programs.gpg,
        ["--batch", "--yes", "--quiet", "--passphrase", "", "--local-user", key, form] + options
          + ["--output", "out", "--detach-sign", "film.mkv"],
        in: folder.path)
      return try folder.read("out")
    }

    private func failure(
      _ signature: [UInt8], of bytes: [UInt8]? = nil, _ step: VerifyOpenPGP? = nil
    ) async throws -> DownloadError? {
      let bytes = bytes ?? self.bytes
      let path = try folder.write(bytes, to: "-downloaded")
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/film.mkv"), workspace: folder.path,
        fetch: { url, maximum, _ in
          #expect(url.absoluteString == "https://example.org/film.mkv.asc" && maximum == VerifyOpenPGP.maximumBytes)
          return signature
        })
      var errors: [DownloadError?] = []
      for location in [Artifact.Location.path(path), .memory(bytes)] {
        let artifact = Artifact(location: location, name: "film.mkv")
        do {
          let result = try await (step ?? VerifyOpenPGP(keyring: keyring)).process(artifact, in: context)
          #expect(result == artifact)
          errors.append(nil)
        } catch let error as DownloadError {
          errors.append(error)
        }
      }
      #expect(errors[0]?.code == errors[1]?.code)
      return errors[0]
    }

    @Test("a detached signature is verified", arguments: ["--armor", "--no-armor"])
    func right(_ form: String) async throws {
      #expect(try await failure(sign("own@example.org", form)) == nil)
    }

    @Test("the keyring may be text")
    func armoredKeyring() async throws {
      try gpg("--armor", "--output", "keys.asc", "--export", "own@example.org")
      let signature = try sign()
      #expect(try await failure(signature, of: bytes, VerifyOpenPGP(keyring: folder.path("keys.asc"))) == nil)
      let text = try folder.read("keys.asc")
      _ = try folder.write(Array(text.prefix(text.count / 2)), to: "half.asc")
      let error = try await failure(signature, of: bytes, VerifyOpenPGP(keyring: folder.path("half.asc")))
      #expect(error?.code == .invalidPipeline)
    }

    @Test func tampered() async throws {
      let signature = try sign()
      var changed = bytes
      changed[150_000] ^= 1
      for other in [changed, Array(bytes.dropLast()), bytes + [0], []] {
        let error = try await failure(signature, of: other)
        #expect(error?.code == .badSignature && error?.url == "https://example.org/film.mkv.asc")
      }
    }

    @Test func anotherKey() async throws {
      try Self.makeKey("other@example.org", in: folder)
      let error = try await failure(sign("other@example.org"))
      #expect(error?.code == .badSignature)
      #expect(error?.message.contains("does not have the key") == true)
      let both = try sign("own@example.org", "--no-armor") + sign("other@example.org", "--no-armor")
      #expect(try await failure(both)?.code == .badSignature, "all signatures must be good")
    }

    @Test("a key that has expired is not accepted")
    func expired() async throws {
      try Programs.run(
        Programs.gpg,
        [
          "--batch", "--quiet", "--passphrase", "", "--faked-system-time", "20200101T000000!", "--quick-generate-key",
          "old@example.org", "ed25519", "sign", "2020-01-05",
        ], in: folder.path)
      let signature = try sign("old@example.org", "--armor", "--faked-system-time", "20200102T000000!")
      try gpg("--output", "old.gpg", "--export", "old@example.org")
      let error = try await failure(signature, of: bytes, VerifyOpenPGP(keyring: folder.path("old.gpg")))
      #expect(error?.code == .badSignature)
      #expect(error?.message.contains("the key has expired") == true)
    }

    @Test("a signed message is not a signature of the file", arguments: ["--sign", "--clear-sign"])
    func signedMessage(_ form: String) async throws {
      _ = try folder.write(Array("another text\n".utf8), to: "text")
      for armor in ["--armor", "--no-armor"] {
        try gpg(armor, "--local-user", "own@example.org", "--output", "message", form, "text")
        let message = try folder.read("message")
        #expect(try await failure(message)?.code == .badSignature)
        // With white space before it, gpgv would read the same.
        #expect(try await failure([0x0A, 0x20] + message)?.code == .badSignature)
      }
    }

    @Test("truncated and damaged signatures are refused")
    func truncated() async throws {
      let signature = try sign("own@example.org", "--no-armor")
      for count in [0, 1, 2, 20, signature.count / 2, signature.count - 1] {
        #expect(try await failure(Array(signature.prefix(count)))?.code == .badSignature, "\(count) bytes")
      }
      for place in [signature.count - 1, signature.count - 40] {
        var changed = signature
        changed[place] ^= 1
        #expect(try await failure(changed)?.code == .badSignature)
      }
      for bytes in [Array("<html>".utf8), Array("-----BEGIN PGP SIGNATURE-----\n".utf8)] {
        #expect(try await failure(bytes)?.code == .badSignature)
      }
    }

    @Test("a missing gpgv and a missing keyring are named")
    func missing() async throws {
      let signature = try sign()
      let nowhere = folder.path("nowhere/gpgv")
      let error = try await failure(signature, of: bytes, VerifyOpenPGP(keyring: keyring, program: nowhere))
      #expect(error?.code == .processing)
      #expect(error?.message.contains(nowhere) == true && error?.message.contains("install GnuPG") == true)
      let absent = folder.path("absent.gpg")
      let other = try await failure(signature, of: bytes, VerifyOpenPGP(keyring: absent))
      #expect(other?.code == .invalidPipeline && other?.message.contains(absent) == true)
    }

    @Test("a program that fails after a good report is not trusted")
    func failingProgram() async throws {
      let report = "[GNUPG:] GOODSIG A b\\n[GNUPG:] VALIDSIG A 2020-01-01 1 0 4 0 22 10 00 A\\n"
      for (code, isGood) in [(0, true), (1, false)] {
        let program = try folder.write(Array("#!/bin/sh\nprintf '\(report)'\nexit \(code)\n".utf8), to: "gpgv-\(code)")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
        let error = try await failure([0x88, 1], of: bytes, VerifyOpenPGP(keyring: keyring, program: program))
        #expect((error == nil) == isGood)
      }
    }

    @Test("the program is killed when its task is cancelled, and nothing is left")
    func cancelled() async throws {
      let program = try folder.write(
        Array(
          "#!/bin/sh\necho $$ > \(folder.path("started.tmp"))\nmv \(folder.path("started.tmp")) \(folder.path("started"))\nexec sleep 3600\n"
            .utf8), to: "gpgv-slow")
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
      let step = VerifyOpenPGP(keyring: keyring, program: program)
      let task = Task { try await failure([0x88, 1], of: bytes, step) }
      while !FileManager.default.fileExists(atPath: folder.path("started")) { await Task.yield() }
      let text = String(decoding: try folder.read("started"), as: UTF8.self)
      let id = try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(kill(id, 0) == -1 && errno == ESRCH)
    }

    @Test("VerifyOpenPGP conforms to the contract of a step")
    func conformance() async throws {
      let signature = try sign()
      let example = PostProcessorConformance.Example(bytes).fetching { _, _, _ in signature }
      let bad = PostProcessorConformance.Example([1, 2, 3]).fetching { _, _, _ in signature }
      try await PostProcessorConformance(VerifyOpenPGP(keyring: keyring), example, bad: bad).run()
    }

    @Test func statusLines() {
      let good = "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG A b\n[GNUPG:] VALIDSIG A 2020-01-01 1 0 4 0 22 10 00 A\n"
      #expect(GPGVStatus(good).isGood)
      for bad in [
        "", "[GNUPG:] GOODSIG A b\n", good + "[GNUPG:] ERRSIG B\n", good + "[GNUPG:] GOODSIG C d\n",
        good.replacing("GOODSIG", with: "EXPKEYSIG"), good.replacing("GOODSIG", with: "REVKEYSIG"),
        good.replacing(" 00 A", with: " 10 A"), good.replacing(" 00 A", with: ""),
        good.replacing("[GNUPG:] ", with: ""),
      ] {
        #expect(!GPGVStatus(bad).isGood)
      }
    }
  }
#endif
