/// A digest algorithm.
public struct DigestAlgorithm: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The name in the registry of RFC 9530, in lower case, such as `sha-256`.
  public let name: String

  /// SHA-256 (FIPS 180-4).
  public static let sha256 = DigestAlgorithm("sha-256")
  /// SHA-384 (FIPS 180-4).
  public static let sha384 = DigestAlgorithm("sha-384")
  /// SHA-512 (FIPS 180-4).
  public static let sha512 = DigestAlgorithm("sha-512")
  /// SHA-1. It detects accidental changes, but is broken against attackers.
  public static let sha1 = DigestAlgorithm("sha-1")
  /// MD5. It detects accidental changes, but is broken against attackers.
  public static let md5 = DigestAlgorithm("md5")
  /// CRC-32 (ISO 3309), big-endian.
  public static let crc32 = DigestAlgorithm("crc32")
  /// CRC-32C (RFC 9260 Appendix A), big-endian. Like CRC-32, it detects accidental changes only.
  public static let crc32c = DigestAlgorithm("crc32c")

  /// Creates an algorithm from its name; `SHA256`, `sha256` and `sha-256` are equal.
  public init(_ name: String) {
    let lower = name.lowercased()
    self.name =
      switch lower {
      case "sha256", "sha-256": "sha-256"
      case "sha384", "sha-384": "sha-384"
      case "sha512", "sha-512": "sha-512"
      case "sha", "sha1", "sha-1": "sha-1"
      case "md-5", "md5": "md5"
      case "crc-32", "crc32": "crc32"
      case "crc-32c", "crc32c": "crc32c"
      default: lower
      }
  }

  /// The name of the algorithm.
  public var description: String { name }

  /// Whether it is infeasible to create two files with the same digest.
  package var isStrong: Bool { self == .sha256 || self == .sha384 || self == .sha512 }

  /// The algorithms above, the strongest last.
  package static let byStrength: [DigestAlgorithm] = [.crc32, .crc32c, .md5, .sha1, .sha256, .sha384, .sha512]

  /// The length of the digest in bytes; `nil` for algorithms other than the ones above.
  public var byteCount: Int? {
    switch name {
    case "sha-256": 32
    case "sha-384": 48
    case "sha-512": 64
    case "sha-1": 20
    case "md5": 16
    case "crc32", "crc32c": 4
    default: nil
    }
  }
}

/// A digest of a whole file.
public struct FileDigest: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The algorithm of the digest.
  public let algorithm: DigestAlgorithm
  /// The bytes of the digest.
  public let bytes: [UInt8]

  /// Creates a digest from its bytes.
  public init(_ algorithm: DigestAlgorithm, bytes: [UInt8]) {
    self.algorithm = algorithm
    self.bytes = bytes
  }

  /// Creates a digest from hexadecimal text; `nil` for other characters, or for a length that the algorithm does not
  /// have.
  public init?(_ algorithm: DigestAlgorithm, hex: String) {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in hex {
      guard let value = character.hexDigitValue, character.isASCII else { return nil }
      if let first = high {
        bytes.append(first << 4 | UInt8(value))
        high = nil
      } else {
        high = UInt8(value)
      }
    }
    guard high == nil, !bytes.isEmpty, algorithm.byteCount.map({ $0 == bytes.count }) ?? true else { return nil }
    self.init(algorithm, bytes: bytes)
  }

  /// The digest as lower-case hexadecimal text.
  public var hex: String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The digest as text, such as `sha-256=9f86…`.
  public var description: String { "\(algorithm)=\(hex)" }
}
