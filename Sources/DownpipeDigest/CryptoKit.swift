#if canImport(CryptoKit)
  import CryptoKit

  /// A digest of CryptoKit, whose hash functions are values.
  struct HashState: Sendable {
    private var hash: any CryptoKit.HashFunction

    // Declared as that of libcrypto; CryptoKit has all functions.
    init(_ function: HashFunction) throws(DigestError) { hash = function.type.init() }

    mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

    func finalize() -> [UInt8] {
      func digest(_ hash: some CryptoKit.HashFunction) -> [UInt8] { Array(hash.finalize()) }
      return digest(hash)
    }

    static func authenticationCode(
      _ function: HashFunction, of message: [UInt8], key: [UInt8]
    ) throws(DigestError) -> [UInt8] {
      func code<Function: CryptoKit.HashFunction>(_ type: Function.Type) -> [UInt8] {
        Array(HMAC<Function>.authenticationCode(for: message, using: SymmetricKey(data: key)))
      }
      return code(function.type)
    }
  }

  extension HashFunction {
    fileprivate var type: any CryptoKit.HashFunction.Type {
      switch self {
      case .sha256: SHA256.self
      case .sha384: SHA384.self
      case .sha512: SHA512.self
      case .sha1: Insecure.SHA1.self
      case .md5: Insecure.MD5.self
      }
    }
  }
#endif
