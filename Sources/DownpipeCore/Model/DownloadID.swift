/// The key of a download in the ledger, by which an app finds it again across restarts.
///
/// It is neither the URL, which may expire or move, nor the name of the file. Use the key by which the app itself
/// identifies the file, such as an episode's GUID or the primary key of a row:
/// ```swift
/// try await downloader.add(DownloadRequest(episode.url, id: "episode \(episode.number)"))
/// ```
/// Adding a request whose id is known updates that download and starts no second one. A request without an id gets a
/// random id, so each time it is added it becomes a new download.
public struct DownloadID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible,
  ExpressibleByStringInterpolation
{
  /// The text of the id, as the ledger stores it.
  public let rawValue: String

  /// Creates an id from any non-empty text of at most 255 UTF-8 bytes. The limit is checked when the request is added.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// Creates a random id of 80 bits (16 characters).
  public init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }

  /// Creates a random id of 80 bits, drawn from `generator`.
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

  /// Creates an id from a literal.
  public init(stringLiteral value: String) { self.init(value) }

  /// Decodes the text of the id.
  public init(from decoder: any Decoder) throws {
    rawValue = try decoder.singleValueContainer().decode(String.self)
  }

  /// Encodes the text of the id.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }

  /// The text of the id.
  public var description: String { rawValue }

  /// Orders ids by their text.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
