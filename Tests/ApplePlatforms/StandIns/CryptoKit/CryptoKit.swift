// The declarations of CryptoKit that Downpipe uses: https://developer.apple.com/documentation/cryptokit. The digests are
// those of libcrypto.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CCrypto
public import protocol Foundation.DataProtocol

public protocol Digest: Sendable, Hashable, Sequence where Element == UInt8 {}

public protocol HashFunction: Sendable {
  associatedtype Digest: CryptoKit.Digest
  init()
  mutating func update(bufferPointer: UnsafeRawBufferPointer)
  func finalize() -> Digest
}

/// Not there: what all digests of the stand-in are.
public struct Bytes: Digest {
  let bytes: [UInt8]
  public func makeIterator() -> [UInt8].Iterator { bytes.makeIterator() }
}

/// Not there: a hash function that keeps what it is given.
public protocol KeptBytes: HashFunction where Digest == Bytes {
  static var libcryptoName: String { get }
  var bytes: [UInt8] { get set }
}

extension KeptBytes {
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) { bytes += bufferPointer }

  public func finalize() -> Bytes {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count = 0
    precondition(EVP_Q_digest(nil, Self.libcryptoName, nil, bytes, bytes.count, &digest, &count) == 1)
    return Bytes(bytes: Array(digest.prefix(count)))
  }
}

public struct SHA256: KeptBytes {
  public static let libcryptoName = "SHA256"
  public var bytes: [UInt8] = []
  public init() {}
}

public struct SHA384: KeptBytes {
  public static let libcryptoName = "SHA384"
  public var bytes: [UInt8] = []
  public init() {}
}

public struct SHA512: KeptBytes {
  public static let libcryptoName = "SHA512"
  public var bytes: [UInt8] = []
  public init() {}
}

public enum Insecure {
  public struct SHA1: KeptBytes {
    public static let libcryptoName = "SHA1"
    public var bytes: [UInt8] = []
    public init() {}
  }

  public struct MD5: KeptBytes {
    public static let libcryptoName = "MD5"
    public var bytes: [UInt8] = []
    public init() {}
  }
}

public struct SymmetricKey: Sendable {
  let bytes: [UInt8]
  public init(data: some DataProtocol) { bytes = Array(data) }
}

public struct HashedAuthenticationCode: Sendable, Sequence {
  let bytes: [UInt8]
  public func makeIterator() -> [UInt8].Iterator { bytes.makeIterator() }
}

public struct HMAC<H: HashFunction>: Sendable {
  public typealias MAC = HashedAuthenticationCode

  /// By the definition of RFC 2104.
  public static func authenticationCode(for data: some DataProtocol, using key: SymmetricKey) -> MAC {
    func hash(_ parts: [UInt8]...) -> [UInt8] {
      var hash = H()
      for part in parts { part.withUnsafeBytes { hash.update(bufferPointer: $0) } }
      return Array(hash.finalize())
    }
    let block = hash().count > 32 ? 128 : 64
    var key = key.bytes.count > block ? hash(key.bytes) : key.bytes
    key += [UInt8](repeating: 0, count: block - key.count)
    return MAC(bytes: hash(key.map { $0 ^ 0x5C }, hash(key.map { $0 ^ 0x36 }, Array(data))))
  }
}
