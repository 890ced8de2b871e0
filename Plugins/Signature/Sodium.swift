#if LIBSODIUM
  import CSodium
  import DownpipeCore

  /// Ed25519 (RFC 8032) by libsodium.
  enum Ed25519 {
    private static let isReady = sodium_init() >= 0

    /// Whether a signature of 64 bytes is one of the message by a key of 32 bytes.
    static func isValid(_ signature: [UInt8], of message: [UInt8], by key: [UInt8]) -> Bool {
      guard isReady, signature.count == Int(crypto_sign_ed25519_bytes()),
        key.count == Int(crypto_sign_ed25519_publickeybytes())
      else { return false }
      return crypto_sign_ed25519_verify_detached(signature, message, UInt64(message.count), key) == 0
    }
  }

  /// BLAKE2b with 64 bytes (RFC 7693), by libsodium.
  struct BLAKE2b512: ~Copyable {
    static let byteCount = 64
    private let memory: UnsafeMutableRawPointer
    /// Swift does not import the type of the state, because of its alignment.
    private let state: OpaquePointer

    init() {
      memory = .allocate(byteCount: Int(crypto_generichash_blake2b_statebytes()), alignment: 64)
      state = OpaquePointer(memory)
      crypto_generichash_blake2b_init(state, nil, 0, Self.byteCount)
    }

    deinit { memory.deallocate() }

    mutating func update(_ bytes: RawSpan) {
      bytes.withUnsafeBytes { buffer in
        let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        _ = crypto_generichash_blake2b_update(state, start, UInt64(buffer.count))
      }
    }

    /// Returns the digest. No more bytes can follow.
    consuming func finalize() -> [UInt8] {
      var digest = [UInt8](repeating: 0, count: Self.byteCount)
      crypto_generichash_blake2b_final(state, &digest, Self.byteCount)
      return digest
    }
  }
#endif
