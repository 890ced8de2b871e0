/// A number of bytes that may be unknown. Unknown is a case of its own and never −1 or 0.
public enum ByteCount: Hashable, Sendable {
  /// A known number of bytes, never negative.
  case known(Int64)
  /// An unknown number of bytes.
  case unknown

  /// The number of bytes; `nil` when it is unknown. A negative number counts as unknown.
  public var bytes: Int64? {
    if case .known(let bytes) = self, bytes >= 0 { bytes } else { nil }
  }

  /// Creates a known count from a number, and an unknown count from `nil` or a negative number.
  public init(_ bytes: Int64?) {
    self = if let bytes, bytes >= 0 { .known(bytes) } else { .unknown }
  }
}

extension ByteCount: ExpressibleByIntegerLiteral {
  /// Creates a count from a literal: `expectedSize: 4096`.
  public init(integerLiteral value: Int64) { self.init(value) }
}

extension ByteCount: Codable {
  /// Decodes a number, or null for an unknown count.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    self.init(container.decodeNil() ? nil : try container.decode(Int64.self))
  }

  /// Encodes the number, or null for an unknown count.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let bytes { try container.encode(bytes) } else { try container.encodeNil() }
  }
}
