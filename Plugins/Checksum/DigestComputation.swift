import CZlib
public import DownpipeCore
import DownpipeDigest

/// Computes a digest of bytes that arrive in chunks.
///
/// ```swift
/// var computation = try DigestComputation(.sha256)
/// for chunk in chunks { computation.update(chunk.span.bytes) }
/// let digest = computation.finalize()
/// ```
///
/// It is a value: a copy continues independently. Memory is constant, and `update` does not block. If libcrypto fails in the
/// middle of a digest, the process ends.
public struct DigestComputation: Sendable {
  /// The algorithm of the digest.
  public let algorithm: DigestAlgorithm
  /// The state of a hash function; `nil` for a CRC.
  private var hash: StreamingDigest?
  private var crc32: UInt32 = 0
  private var crc32c = CRC32C()

  /// The supported algorithms: SHA-256, SHA-384, SHA-512, SHA-1, MD5, CRC-32 and CRC-32C.
  ///
  /// Those that the system's libcrypto refuses are not among them, such as MD5 with a FIPS provider.
  public static let supportedAlgorithms: [DigestAlgorithm] =
    [.sha256, .sha384, .sha512, .sha1, .md5].filter { hashFunction($0)?.isAvailable == true } + [.crc32, .crc32c]

  private static func hashFunction(_ algorithm: DigestAlgorithm) -> HashFunction? {
    switch algorithm {
    case .sha256: .sha256
    case .sha384: .sha384
    case .sha512: .sha512
    case .sha1: .sha1
    case .md5: .md5
    default: nil
    }
  }

  /// Starts a digest of no bytes.
  ///
  /// - Throws: `DownloadError` with `.invalidRequest` for an algorithm that is not in ``supportedAlgorithms``.
  public init(_ algorithm: DigestAlgorithm) throws(DownloadError) {
    self.algorithm = algorithm
    if algorithm == .crc32 || algorithm == .crc32c { return }
    guard let function = Self.hashFunction(algorithm) else {
      throw DownloadError(
        .invalidRequest,
        "the digest algorithm “\(algorithm.name.prefix(64))” is not supported: use one of \(Self.supportedNames)")
    }
    do { hash = try StreamingDigest(function) } catch {
      throw DownloadError(.invalidRequest, "\(error): use one of \(Self.supportedNames)")
    }
  }

  /// The names of the supported algorithms, for messages.
  static var supportedNames: String { supportedAlgorithms.map(\.name).joined(separator: ", ") }

  /// Takes the next bytes.
  public mutating func update(_ bytes: RawSpan) {
    // In place: a digest with two references would be copied.
    if hash != nil { hash?.update(bytes) } else { bytes.withUnsafeBytes { updateCRC($0) } }
  }

  private mutating func updateCRC(_ bytes: UnsafeRawBufferPointer) {
    if algorithm == .crc32c { return crc32c.update(bytes) }
    // libz counts in 32 bits.
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
      let start = part.baseAddress?.assumingMemoryBound(to: UInt8.self)
      crc32 = UInt32(truncatingIfNeeded: CZlib.crc32(UInt(crc32), start, UInt32(part.count)))
      rest = rest.dropFirst(part.count)
    }
  }

  /// Returns the digest of all bytes so far. More bytes can follow.
  public func finalize() -> FileDigest {
    FileDigest(
      algorithm, bytes: hash?.finalize() ?? Self.bigEndian(algorithm == .crc32c ? crc32c.value : crc32))
  }

  private static func bigEndian(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }
}
