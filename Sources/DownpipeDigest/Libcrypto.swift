#if !canImport(CryptoKit)
  // The functions of libcrypto's interface EVP, which ask the configured providers, such as that of FIPS.
  import CCrypto
  import Synchronization

  /// A digest of libcrypto, which is copied when it changes while another copy exists.
  struct HashState: Sendable {
    private var context: DigestContext

    init(_ function: HashFunction) throws(DigestError) {
      // Fetching a function takes longer than the digest of a small file, so it is done once, for all digests.
      context = try Self.started[function.rawValue].get()
    }

    /// A digest of no bytes for each function.
    private static let started = HashFunction.allCases.map { function in
      Result { () throws(DigestError) in try DigestContext(function) }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      if !isKnownUniquelyReferenced(&context) { context = DigestContext(copying: context) }
      context.update(bytes)
    }

    func finalize() -> [UInt8] { DigestContext(copying: context).finish() }

    static func authenticationCode(
      _ function: HashFunction, of message: [UInt8], key: [UInt8]
    ) throws(DigestError) -> [UInt8] {
      // An array without elements may have no address, and libcrypto takes a missing key for none rather than an empty one.
      let (key, keyCount) = (key.isEmpty ? [0] : key, key.count)
      var code: [UInt8] = []
      try DigestError.check(function) {
        code = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
          let isDone =
            EVP_Q_mac(
              nil, "HMAC", nil, function.libcryptoName, nil, key, keyCount, message, message.count, buffer.baseAddress,
              buffer.count, &count) != nil
          if !isDone { count = 0 }
        }
        return !code.isEmpty
      }
      return code
    }
  }

  /// Owns an `EVP_MD_CTX`, which is not safe for several threads: each call holds the lock. It is free unless copies of one
  /// digest are used at the same time.
  final class DigestContext: Sendable {
    // A number, because the compiler knows pointers of C as not `Sendable`, also under a lock.
    private let address: Mutex<UInt>

    /// Starts a digest of no bytes.
    ///
    /// - Parameter properties: The providers that are considered, in OpenSSL's query syntax; by default those of the
    ///   configuration of libcrypto.
    init(_ function: HashFunction, properties: String? = nil) throws(DigestError) {
      address = Mutex(Self.allocate())
      try DigestError.check(function) {
        withContext { context in
          guard let type = EVP_MD_fetch(nil, function.libcryptoName, properties) else { return false }
          // The context keeps a reference.
          defer { EVP_MD_free(type) }
          return EVP_DigestInit_ex2(context, type, nil) == 1
        }
      }
    }

    init(copying other: DigestContext) {
      address = Mutex(Self.allocate())
      let isCopied = other.withContext { source in withContext { EVP_MD_CTX_copy_ex($0, source) == 1 } }
      guard isCopied else { Self.fail("copy a digest") }
    }

    deinit { withContext { EVP_MD_CTX_free($0) } }

    func update(_ bytes: UnsafeRawBufferPointer) {
      guard withContext({ EVP_DigestUpdate($0, bytes.baseAddress, bytes.count) == 1 }) else {
        Self.fail("continue a digest")
      }
    }

    /// Returns the digest; the context cannot be used any more.
    func finish() -> [UInt8] {
      withContext { context in
        [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
          var length: UInt32 = 0
          guard EVP_DigestFinal_ex(context, buffer.baseAddress, &length) == 1 else { Self.fail("finish a digest") }
          count = Int(length)
        }
      }
    }

    private func withContext<Value: Sendable>(_ body: (OpaquePointer?) -> Value) -> Value {
      address.withLock { body(OpaquePointer(bitPattern: $0)) }
    }

    private static func allocate() -> UInt {
      guard let context = EVP_MD_CTX_new() else { fail("allocate a digest") }
      return UInt(bitPattern: context)
    }

    // Memory has run out, or a provider has stopped working. Going on would give a wrong digest.
    private static func fail(_ action: String) -> Never {
      fatalError("libcrypto cannot \(action): \(DigestError.lastReason)")
    }
  }

  extension DigestError {
    /// The last reason of the thread for a failure of libcrypto.
    fileprivate static var lastReason: String {
      ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) } ?? "no reason is given"
    }

    /// Throws if a call of libcrypto fails.
    fileprivate static func check(_ function: HashFunction, _ call: () -> Bool) throws(DigestError) {
      // The queue of errors belongs to the thread: what others have put there stays, and what the call adds goes, because
      // OpenSSL would take it for a failure of the next TLS connection.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard !call() else { return }
      let version = String(cString: OpenSSL_version(OPENSSL_VERSION_STRING))
      throw DigestError(function: function, reason: "libcrypto \(version) refuses it (\(lastReason))")
    }
  }

  extension HashFunction {
    fileprivate var libcryptoName: String {
      switch self {
      case .sha256: "SHA2-256"
      case .sha384: "SHA2-384"
      case .sha512: "SHA2-512"
      case .sha1: "SHA1"
      case .md5: "MD5"
      }
    }
  }
#endif
