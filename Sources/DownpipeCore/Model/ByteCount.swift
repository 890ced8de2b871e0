/// A number of bytes that may not be known, which is a case of its own and never −1 or 0.
public enum ByteCount: Hashable, Sendable {
  /// Exactly this many bytes; never negative.
  case known(Int64)
  /// The server did not say.
  case unknown

  /// The number, where it is known.
  public var bytes: Int64? {
    if case .known(let bytes) = self { bytes } else { nil }
  }

  /// A known count for a number, unknown for `nil` and for a negative one.
  public init(_ bytes: Int64?) {
    self = if let bytes, bytes >= 0 { .known(bytes) } else { .unknown }
  }
}

extension ByteCount: ExpressibleByIntegerLiteral {
  /// Makes a count in source text: `expectedSize: 4096`.
  public init(integerLiteral value: Int64) { self.init(value) }
}

extension ByteCount: Codable {
  /// Reads a number, or null for an unknown count.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    self.init(container.decodeNil() ? nil : try container.decode(Int64.self))
  }

  /// Writes the number, or null.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let bytes { try container.encode(bytes) } else { try container.encodeNil() }
  }
}

/// A half-open run of byte positions.
public typealias ByteRange = Range<Int64>

/// A set of byte positions, kept as sorted runs: what is on disk of a download.
public typealias ByteRangeSet = RangeSet<Int64>

extension RangeSet where Bound == Int64 {
  /// The bytes in the set.
  public var byteCount: Int64 {
    ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
  }

  /// The length of the run that begins at byte 0; 0 when the first byte is missing.
  public var prefixLength: Int64 {
    guard let first = ranges.first, first.lowerBound == 0 else { return 0 }
    return first.upperBound
  }

  /// The runs as text, `0-100,200-300` (half-open), as ledgers store them.
  package var storedText: String {
    ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
  }

  /// Reads what ``storedText`` wrote; `nil` for anything else.
  package init?(storedText: some StringProtocol) {
    self.init()
    for run in storedText.split(separator: ",") {
      let ends = run.split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count == 2, let lower = Int64(ends[0]), let upper = Int64(ends[1]),
        lower >= 0, lower < upper
      else { return nil }
      insert(contentsOf: lower..<upper)
    }
  }
}
