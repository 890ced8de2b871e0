#if !canImport(CryptoKit)
  import CCrypto
  import Testing

  @testable import DownpipeDigest

  @Suite
  struct LibcryptoTests {
    @Test("a function that no provider has is a typed error, with the version and the reason of libcrypto")
    func refusal() {
      let error = #expect(throws: DigestError.self) { try DigestContext(.md5, properties: "provider=missing") }
      #expect(error?.function == .md5)
      #expect(error?.description.hasPrefix("md5 cannot be computed: libcrypto ") == true)
      #expect(error?.description.contains("unsupported") == true)
    }

    @Test("a failure leaves the thread's queue of errors as it was, which belongs to TLS, too")
    func errorQueue() {
      ERR_clear_error()
      defer { ERR_clear_error() }
      #expect(throws: DigestError.self) { try DigestContext(.md5, properties: "provider=missing") }
      #expect(ERR_peek_error() == 0)
      // The error of another user of libcrypto.
      #expect(EVP_MD_fetch(nil, "missing", nil) == nil)
      let (first, last) = (ERR_peek_error(), ERR_peek_last_error())
      #expect(first != 0)
      #expect(throws: DigestError.self) { try DigestContext(.md5, properties: "provider=missing") }
      #expect(ERR_peek_error() == first)
      #expect(ERR_peek_last_error() == last)
    }

    @Test("more bytes than 32 bits can count bits")
    func large() throws {
      let block = [UInt8](repeating: 0, count: 1 << 20)
      var digest = try StreamingDigest(.sha256)
      for _ in 0..<513 { digest.update(block.span.bytes) }
      let expected: [UInt64] = [
        0xa3e2acbb469e4e59, 0xdde406f912e754c9, 0x33c1ac0fb0092a36, 0x34d61d5073309c0c,
      ]
      let bytes = expected.map(\.bigEndian).withUnsafeBytes { Array($0) }
      #expect(digest.finalize() == bytes)
    }

    @Test("the functions of the usual providers are available", arguments: HashFunction.allCases)
    func availability(_ function: HashFunction) { #expect(function.isAvailable) }
  }
#endif
