/// The name of one download: stable over restarts, independent of its URL (which may expire).
///
/// Adding a request whose id is already known updates that download instead of starting a second one.
public struct DownloadID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  /// The text of the id, as it is stored in the ledger.
  public let rawValue: String

  /// Names a download. Any non-empty text of at most 255 UTF-8 bytes will do;
  /// the limit is checked when the request is added.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// A fresh random id: 80 bits, 16 characters.
  public init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }

  /// A fresh random id drawn from `generator`.
  public init(using generator: inout some RandomNumberGenerator) {
    let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    var text = ""
    text.reserveCapacity(16)
    for _ in 0..<2 {
      var bits = generator.next() as UInt64
      for _ in 0..<8 {
        text.unicodeScalars.append(Unicode.Scalar(alphabet[Int(bits & 31)]))
        bits >>= 5
      }
    }
    self.rawValue = text
  }

  /// Names a download in source text.
  public init(stringLiteral value: String) { self.init(value) }

  /// Decodes the bare text.
  public init(from decoder: any Decoder) throws {
    rawValue = try decoder.singleValueContainer().decode(String.self)
  }

  /// Encodes the bare text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }

  /// The text of the id.
  public var description: String { rawValue }

  /// Orders ids by their text.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
