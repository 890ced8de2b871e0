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
