/// What a download is called in the ledger: the key by which an app finds it again, over restarts too.
///
/// It is not the URL, which may expire or move, and not the name of the file. Give what the app itself knows the thing by,
/// such as an episode's GUID or the primary key of a row:
/// ```swift
/// try await downloader.add(DownloadRequest(episode.url, id: DownloadID(episode.guid)))
/// ```
/// Adding a request whose id is already known updates that download instead of starting a second one. A request without an
/// id gets a random one, and is a download of its own each time it is added.
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
