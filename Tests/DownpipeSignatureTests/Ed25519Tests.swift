#if LIBSODIUM
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeSignature

  /// Plain Ed25519 signatures: the examples of RFC 8032 §7.1.
  @Suite(.endsHangs)
  struct Ed25519Tests {
    struct Example: Sendable {
      var key: String
      var message: [UInt8]
      var signature: String
    }

    static let examples = [
      Example(
        key: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", message: [],
        signature: "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
          + "d25bf5f0595bbe24655141438e7a100b"),
      Example(
        key: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", message: [0x72],
        signature: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
          + "387b2eaeb4302aeeb00d291612bb0c00"),
      Example(
        key: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", message: [0xAF, 0x82],
        signature: "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
          + "4a7c15e9716ed28dc027beceea1ec40a"),
    ]

    static func bytes(_ hex: String) throws -> [UInt8] {
      try #require(FileDigest(DigestAlgorithm("hex"), hex: hex)).bytes
    }

    private func failure(_ key: [UInt8], _ signature: [UInt8], _ message: [UInt8]) async throws -> DownloadError? {
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/f"), workspace: nil,
        fetch: { url, _, _ in
          #expect(url.absoluteString == "https://example.org/f.sig")
          return signature
        })
      do {
        _ = try await VerifySignature(.ed25519(publicKey: key), signature: .beside(".sig"))
          .process(Artifact(location: .memory(message), name: "f"), in: context)
        return nil
      } catch let error as DownloadError {
        return error
      }
    }

    @Test(arguments: examples)
    func example(_ example: Example) async throws {
      let key = try Self.bytes(example.key)
      let signature = try Self.bytes(example.signature)
      let base64 = Data(signature).base64EncodedString()
      for form in [signature, Array(example.signature.utf8), Array("\(base64)\n".utf8), Array(base64.utf8)] {
        #expect(try await failure(key, form, example.message) == nil)
      }
      #expect(try await failure(key, signature, example.message + [0])?.code == .badSignature)
      for place in stride(from: 0, to: 64, by: 9) {
        var changed = signature
        changed[place] ^= 4
        #expect(try await failure(key, changed, example.message)?.code == .badSignature)
      }
      #expect(try await failure(Self.bytes(Self.examples[0].key).reversed(), signature, [7])?.code == .badSignature)
    }

    @Test func malformed() async throws {
      let key = try Self.bytes(Self.examples[0].key)
      for signature in [[], [UInt8](repeating: 0, count: 63), [UInt8](repeating: 0xFF, count: 88), Array("abc".utf8)] {
        #expect(try await failure(key, signature, [])?.code == .badSignature)
      }
      #expect(try await failure(Array(key.dropLast()), [], [])?.code == .invalidPipeline)
      // The identity would accept anything as a signature of zeroes.
      let identity: [UInt8] = [1] + [UInt8](repeating: 0, count: 31)
      #expect(try await failure(identity, identity + [UInt8](repeating: 0, count: 32), [])?.code == .badSignature)
    }

    @Test("BLAKE2b-512 of RFC 7693 Appendix A, in parts")
    func blake2b() throws {
      var hash = BLAKE2b512()
      hash.update(([0x61] as [UInt8]).span.bytes)
      hash.update([UInt8]().span.bytes)
      hash.update(([0x62, 0x63] as [UInt8]).span.bytes)
      let digest = hash.finalize()
      let expected = try Self.bytes(
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
          + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923")
      #expect(digest == expected)
    }

    @Test("VerifySignature conforms to the contract of a step")
    func conformance() async throws {
      func example(_ example: Example, _ message: [UInt8]) throws -> PostProcessorConformance.Example {
        let signature = try Self.bytes(example.signature)
        return PostProcessorConformance.Example(message).fetching { _, _, _ in signature }
      }
      let (first, second) = (Self.examples[1], Self.examples[2])
      try await PostProcessorConformance(
        VerifySignature(.ed25519(publicKey: Self.bytes(first.key)), signature: .beside(".sig")),
        example(first, first.message), bad: example(second, first.message)
      ).run()
    }

    @Test func folders() async throws {
      let key = try Self.bytes(Self.examples[1].key)
      let folder = Artifact(kind: .directory, location: .path("/tmp"), name: "folder")
      let context = ProcessingContext(request: try DownloadRequest("https://example.org/f"), workspace: nil)
      let error = await #expect(throws: DownloadError.self) {
        try await VerifySignature(.ed25519(publicKey: key)).process(folder, in: context)
      }
      #expect(error?.code == .processing)
    }
  }
#endif
