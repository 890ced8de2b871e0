/// A number of bytes that may be unknown. Unknown is a case of its own and never −1 or 0.
public enum ByteCount: Hashable, Sendable {
  /// A known number of bytes, never negative.
  case known(Int64)
  /// An unknown number of bytes.
  case unknown

  /// The number of bytes; `nil` when it is unknown.
  public var bytes: Int64? {
    if case .known(let bytes) = self { bytes } else { nil }
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

/// A half-open range of byte offsets.
public typealias ByteRange = Range<Int64>

/// A set of byte offsets, stored as sorted ranges: the stored bytes of a download.
public typealias ByteRangeSet = RangeSet<Int64>

extension ByteRange {
  /// The number of bytes.
  var length: Int64 { upperBound - lowerBound }
}

extension RangeSet where Bound == Int64 {
  /// The number of bytes in the set.
  public var byteCount: Int64 {
    onlyRange?.length ?? ranges.reduce(0) { $0 + $1.length }
  }

  /// The range, if there is exactly one, which is the common case: walking over the ranges calls generic code for each.
  private var onlyRange: ByteRange? {
    let ranges = ranges
    return ranges.count == 1 ? ranges[0] : nil
  }

  /// Inserts the bytes before an offset.
  mutating func insert(before offset: Int64) {
    guard offset > prefixLength else { return }
    if isEmpty { self = RangeSet(0..<offset) } else { insert(contentsOf: 0..<offset) }
  }

  /// The length of the range that begins at byte 0; 0 when the first byte is missing.
  public var prefixLength: Int64 {
    let ranges = ranges
    guard !ranges.isEmpty, ranges[0].lowerBound == 0 else { return 0 }
    return ranges[0].upperBound
  }

  /// Whether all bytes of a range are in the set.
  func contains(_ range: ByteRange) -> Bool { ranges.contains { $0.contains(range) } }

  /// The offset after the last byte; 0 for an empty set.
  var end: Int64 { ranges.last?.upperBound ?? 0 }

  /// The offset of the first of the last `count` bytes; 0 when there are fewer.
  func start(ofLast count: Int64) -> Int64 {
    var left = count
    for range in ranges.reversed() {
      if range.length > left { return range.upperBound - left }
      left -= range.length
    }
    return 0
  }

  /// The ranges as text, `0-100,200-300` (half-open), as ledgers store them.
  package var storedText: String {
    func text(_ range: ByteRange) -> String { "\(range.lowerBound)-\(range.upperBound)" }
    return onlyRange.map(text) ?? ranges.map(text).joined(separator: ",")
  }

  /// Parses text written by ``storedText``; `nil` for any other text.
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

extension Int64 {
  /// The sum, or the greatest number if that is less.
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, isTooMuch) = addingReportingOverflow(other)
    return isTooMuch ? .max : sum
  }
}
