#if LIBSODIUM && (os(Linux) || os(macOS))
  import DownpipeCore
  import DownpipeSignature
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Signatures of the program minisign.
  @Suite(.endsHangs, .enabled(if: Programs.minisign != nil, "there is no minisign"))
  struct MinisignTests {
    private let bytes = DownloadFixtures.pattern(size: 300_000)
    private let folder: TemporaryFolder
    /// The text of the file with the public key.
    private let publicKey: String

    init() throws {
      folder = try TemporaryFolder()
      _ = try folder.write(bytes, to: "film.mkv")
      try Self.makeKey("own", in: folder)
      publicKey = String(decoding: try folder.read("own.pub"), as: UTF8.self)
    }

    private static func makeKey(_ name: String, in folder: TemporaryFolder) throws {
      try Programs.run(
        Programs.minisign, ["-G", "-f", "-W", "-p", "\(name).pub", "-s", "\(name).key"], in: folder.path)
    }

    /// A signature of the file by minisign.
    private func sign(_ key: String = "own", legacy: Bool = false, comment: String = "film 1") throws -> [UInt8] {
      try Programs.run(
        Programs.minisign,
        ["-S"] + (legacy ? ["-l"] : []) + ["-s", "\(key).key", "-m", "film.mkv", "-x", "out", "-t", comment],
        in: folder.path)
      return try folder.read("out")
    }

    private func failure(
      _ signature: [UInt8], of bytes: [UInt8]? = nil, _ step: VerifySignature? = nil
    ) async throws -> DownloadError? {
      let bytes = bytes ?? self.bytes
      let path = try folder.write(bytes, to: "downloaded")
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/film.mkv"), workspace: folder.path,
        fetch: { url, maximum, _ in
          #expect(url.absoluteString == "https://example.org/film.mkv.minisig" && maximum == 16 << 10)
          return signature
        })
      var errors: [DownloadError?] = []
      for location in [Artifact.Location.path(path), .memory(bytes)] {
        let artifact = Artifact(location: location, name: "film.mkv")
        do {
          let result = try await (step ?? VerifySignature(.minisign(publicKey: publicKey)))
            .process(artifact, in: context)
          #expect(result == artifact)
          errors.append(nil)
        } catch let error as DownloadError {
          errors.append(error)
        }
      }
      #expect(errors[0] == errors[1])
      return errors[0]
    }

    @Test("a signature of minisign is verified", arguments: [false, true])
    func right(legacy: Bool) async throws {
      let signature = try sign(legacy: legacy)
      #expect(try MinisignSignature(parsing: signature).isPrehashed == !legacy)
      #expect(try await failure(signature) == nil)
      #expect(
        try await failure(signature, of: bytes, VerifySignature(.minisign(publicKey: publicKey + "\r\n"))) == nil)
      let line = try #require(publicKey.split(separator: "\n").last)
      #expect(try await failure(signature, of: bytes, VerifySignature(.minisign(publicKey: String(line)))) == nil)
    }

    @Test("another file is refused, and another place may have the right one", arguments: [false, true])
    func tampered(legacy: Bool) async throws {
      let signature = try sign(legacy: legacy)
      var changed = bytes
      changed[150_000] ^= 1
      for other in [changed, Array(bytes.dropLast()), bytes + [0], []] {
        #expect(try await failure(signature, of: other)?.code == .digestMismatch)
      }
    }

    @Test func emptyFile() async throws {
      _ = try folder.write([], to: "film.mkv")
      for legacy in [false, true] { #expect(try await failure(sign(legacy: legacy), of: []) == nil) }
    }

    @Test func anotherKey() async throws {
      try Self.makeKey("other", in: folder)
      let error = try await failure(sign("other"))
      #expect(error?.code == .badSignature && error?.message.contains("of the key") == true)
      #expect(error?.url == "https://example.org/film.mkv.minisig")
    }

    @Test("a signature of another key with the right number is refused")
    func anotherKeyWithTheNumber() async throws {
      try Self.makeKey("other", in: folder)
      let own = try MinisignPublicKey(parsing: publicKey)
      var lines = String(decoding: try sign("other"), as: UTF8.self).split(separator: "\n").map(String.init)
      var packet = Array(try #require(Data(base64Encoded: lines[1])))
      packet.replaceSubrange(2..<10, with: own.id)
      lines[1] = Data(packet).base64EncodedString()
      #expect(try await failure(Array(lines.joined(separator: "\n").utf8))?.code == .badSignature)
    }

    /// The lines of a signature.
    private func lines(_ signature: [UInt8]) -> [String] {
      String(decoding: signature, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private func join(_ lines: [String]) -> [UInt8] { Array((lines.joined(separator: "\n") + "\n").utf8) }

    @Test("the untrusted comment may be anything, the trusted one only what was signed")
    func comments() async throws {
      let first = lines(try sign(comment: "film 1"))
      let second = lines(try sign(comment: "film 2"))
      var untrusted = first
      untrusted[0] = "untrusted comment: another"
      #expect(try await failure(join(untrusted)) == nil)
      var swapped = first
      swapped[2] = second[2]
      #expect(try await failure(join(swapped))?.code == .badSignature)
      var both = first
      both[2...3] = second[2...3]
      // Legacy and prehashed Ed25519 signatures are deterministic: the two have the same signature of the file.
      #expect(try await failure(join(both)) == nil)
      _ = try folder.write([1, 2, 3], to: "film.mkv")
      let other = lines(try sign(comment: "another file"))
      both = first
      both[2...3] = other[2...3]
      #expect(try await failure(join(both))?.code == .badSignature, "the comment of another file's signature")
      both = first
      both[1] = other[1]
      #expect(try await failure(join(both))?.code == .badSignature)
    }

    @Test("the caller can judge the trusted comment")
    func judgedComment() async throws {
      let signature = try sign(comment: "version:2")
      func step(_ expected: String) -> VerifySignature {
        VerifySignature(.minisign(publicKey: publicKey)) { $0 == expected }
      }
      #expect(try await failure(signature, of: bytes, step("version:2")) == nil)
      #expect(try await failure(signature, of: bytes, step("version:3"))?.code == .badSignature)
    }

    @Test("a prehashed signature is not one of the file, and the reverse")
    func algorithms() async throws {
      for legacy in [false, true] {
        var lines = lines(try sign(legacy: legacy))
        var packet = Array(try #require(Data(base64Encoded: lines[1])))
        packet[1] = legacy ? UInt8(ascii: "D") : UInt8(ascii: "d")
        lines[1] = Data(packet).base64EncodedString()
        #expect(try await failure(join(lines))?.code == .digestMismatch)
      }
    }

    @Test("truncated and damaged signatures are refused")
    func truncated() async throws {
      let signature = try sign()
      // The line feed at the end is the only part that may be missing.
      for count in stride(from: 0, to: signature.count - 1, by: 7) {
        let error = try await failure(Array(signature.prefix(count)))
        #expect(error?.code == .badSignature, "\(count) bytes")
      }
      #expect(try await failure(signature.dropLast()) == nil)
      for bytes in [signature + signature, Array("<html>".utf8), [0xFF, 0xFE], [UInt8](repeating: 10, count: 20_000)] {
        #expect(try await failure(bytes)?.code == .badSignature)
      }
      var generator = SeededGenerator(seed: 3)
      let start = lines(signature)[0].utf8.count + 1
      for _ in 0..<200 {
        var changed = signature
        let place = Int.random(in: start..<signature.count - 1, using: &generator)
        changed[place] ^= UInt8.random(in: 1...127, using: &generator)
        let error = try await failure(changed)
        #expect(error != nil, "byte \(place)")
      }
    }

    @Test func legacySignaturesNeedMemory() async throws {
      let step = VerifySignature(.minisign(publicKey: publicKey), maximumBytesInMemory: bytes.count - 1)
      #expect(try await failure(sign(legacy: true), of: bytes, step)?.code == .tooLarge)
      #expect(try await failure(sign(), of: bytes, step) == nil)
    }

    @Test(arguments: [
      "", "RW", "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO",
      "AAQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
    ])
    func malformedKeys(_ key: String) async throws {
      let error = try await failure([], of: bytes, VerifySignature(.minisign(publicKey: key)))
      #expect(error?.code == .invalidPipeline)
    }

    @Test("the signature is fetched by the engine")
    func download() async throws {
      let url = try #require(URL(string: "https://example.org/film.mkv"))
      let place = try #require(URL(string: "https://example.org/film.mkv.minisig"))
      let signature = try sign()
      for (script, code) in [
        (FakeSource.Script(signature), nil), (.status(404), .noSignature), (.status(503), .httpStatus),
        (FakeSource.Script(Array(signature.dropLast(40))), .badSignature),
      ] as [(FakeSource.Script, DownloadError.Code?)] {
        let source = FakeSource([url: [.init(bytes)], place: [script]])
        let storage = FakeStorage()
        let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
          source
          storage
          FakeRetryPolicy(.giveUp)
          VerifySignature(.minisign(publicKey: publicKey))
        }
        let download = try await downloader.add(DownloadRequest(url))
        if let code {
          let error = await #expect(throws: DownloadError.self) { try await download.value }
          #expect(error?.code == code && error?.url == place.absoluteString)
        } else {
          #expect(storage.bytes(of: try await download.value) == bytes)
        }
        await downloader.shutdown()
      }
    }

    @Test("a signature that is not one of the file is fetched once more: its copy may be older than the file")
    func olderSignature() async throws {
      let right = try sign()
      _ = try folder.write([1, 2, 3], to: "film.mkv")
      let older = try sign()
      let artifact = Artifact(location: .memory(bytes), name: "film.mkv", size: .known(Int64(bytes.count)))
      for (signatures, fetches, isRight) in [
        ([older, right], 2, true), ([older, older], 2, false), ([right], 1, true),
      ] {
        let count = Watched(0)
        let context = ProcessingContext(
          request: try DownloadRequest("https://example.org/film.mkv"), workspace: folder.path,
          fetch: { _, _, _ in
            count.update { count in
              count += 1
              return signatures[min(count, signatures.count) - 1]
            }
          })
        let step = VerifySignature(.minisign(publicKey: publicKey))
        if isRight {
          #expect(try await step.process(artifact, in: context) == artifact)
        } else {
          let error = await #expect(throws: DownloadError.self) { try await step.process(artifact, in: context) }
          #expect(error?.code == .digestMismatch)
        }
        #expect(count.value == fetches)
      }
    }

    @Test("a tampered mirror is left for the next place")
    func tamperedMirror() async throws {
      let url = try #require(URL(string: "https://example.org/film.mkv"))
      let mirror = try #require(URL(string: "https://mirror.test/film.mkv"))
      let place = try #require(URL(string: "https://example.org/film.mkv.minisig"))
      let source = FakeSource([
        url: [.init(DownloadFixtures.pattern(size: 5000))], mirror: [.init(bytes)], place: [.init(try sign())],
      ])
      let storage = FakeStorage()
      let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
        source
        storage
        VerifySignature(.minisign(publicKey: publicKey))
      }
      let artifact = try await downloader.add(DownloadRequest(url, mirrors: [mirror])).value
      #expect(storage.bytes(of: artifact) == bytes)
      #expect(source.requests.map(\.url) == [url, place, mirror, place])
      await downloader.shutdown()
    }
  }
#endif
