import Crypto
public import DownpipeCore

import CZlib

/// Computes a digest of bytes that arrive in chunks.
///
/// ```swift
/// var computation = try DigestComputation(.sha256)
/// for chunk in chunks { computation.update(chunk.span.bytes) }
/// let digest = computation.finalize()
/// ```
///
/// It is a value: a copy continues independently. Memory is constant, and `update` neither blocks nor fails.
public struct DigestComputation: Sendable {
  private enum State: Sendable {
    case sha256(SHA256)
    case sha384(SHA384)
    case sha512(SHA512)
    case sha1(Insecure.SHA1)
    case md5(Insecure.MD5)
    case crc32(UInt32)
    case crc32c(CRC32C)
    /// While another state is updated; never visible outside of `update`.
    case moved
  }

  /// The algorithm of the digest.
  public let algorithm: DigestAlgorithm
  private var state: State

  /// The supported algorithms: SHA-256, SHA-384, SHA-512, SHA-1, MD5, CRC-32 and CRC-32C.
  public static let supportedAlgorithms: [DigestAlgorithm] = [.sha256, .sha384, .sha512, .sha1, .md5, .crc32, .crc32c]

  /// Starts a digest of no bytes.
  ///
  /// - Throws: `DownloadError` with `.invalidRequest` for an algorithm that is not in ``supportedAlgorithms``.
  public init(_ algorithm: DigestAlgorithm) throws(DownloadError) {
    self.algorithm = algorithm
    switch algorithm {
    case .sha256: state = .sha256(SHA256())
    case .sha384: state = .sha384(SHA384())
    case .sha512: state = .sha512(SHA512())
    case .sha1: state = .sha1(Insecure.SHA1())
    case .md5: state = .md5(Insecure.MD5())
    case .crc32: state = .crc32(0)
    case .crc32c: state = .crc32c(CRC32C())
    default:
      throw DownloadError(
        .invalidRequest,
        "the digest algorithm “\(algorithm.name.prefix(64))” is not supported: use one of \(Self.supportedNames)")
    }
  }

  /// The names of the supported algorithms, for messages.
  static var supportedNames: String { supportedAlgorithms.map(\.name).joined(separator: ", ") }

  /// Takes the next bytes.
  public mutating func update(_ bytes: RawSpan) {
    // The hash is taken out of the enum while it changes: were two references to it alive, each update
    // would copy its state first.
    let taken = state
    state = .moved
    state = bytes.withUnsafeBytes { Self.next(taken, $0) }
  }

  private static func next(_ state: consuming State, _ bytes: UnsafeRawBufferPointer) -> State {
    switch consume state {
    case .sha256(var hash):
      hash.update(bufferPointer: bytes)
      return .sha256(hash)
    case .sha384(var hash):
      hash.update(bufferPointer: bytes)
      return .sha384(hash)
    case .sha512(var hash):
      hash.update(bufferPointer: bytes)
      return .sha512(hash)
    case .sha1(var hash):
      hash.update(bufferPointer: bytes)
      return .sha1(hash)
    case .md5(var hash):
      hash.update(bufferPointer: bytes)
      return .md5(hash)
    case .crc32(var value):
      // libz counts in 32 bits.
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
        let start = part.baseAddress?.assumingMemoryBound(to: UInt8.self)
        value = UInt32(truncatingIfNeeded: CZlib.crc32(UInt(value), start, UInt32(part.count)))
        rest = rest.dropFirst(part.count)
      }
      return .crc32(value)
    case .crc32c(var checksum):
      checksum.update(bytes)
      return .crc32c(checksum)
    case .moved:
      return .moved
    }
  }

  /// Returns the digest of all bytes so far. More bytes can follow.
  public func finalize() -> FileDigest {
    let bytes: [UInt8] =
      switch state {
      case .sha256(let hash): Array(hash.finalize())
      case .sha384(let hash): Array(hash.finalize())
      case .sha512(let hash): Array(hash.finalize())
      case .sha1(let hash): Array(hash.finalize())
      case .md5(let hash): Array(hash.finalize())
      case .crc32(let value): Self.bigEndian(value)
      case .crc32c(let checksum): Self.bigEndian(checksum.value)
      case .moved: []
      }
    return FileDigest(algorithm, bytes: bytes)
  }

  private static func bigEndian(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }
}
