/// The position up to which all bytes are stored, while ranges are written in any order.
///
/// A set of ranges costs more: this one is changed with each chunk, and nearly every chunk begins where another ends.
struct StoredFront: Sendable, Hashable {
  /// The position after the last byte that has no gap before it.
  private(set) var position: Int64
  /// The ranges after a gap, in no particular order; some may touch each other.
  private var ahead: [ByteRange] = []

  init(_ ranges: ByteRangeSet = ByteRangeSet()) {
    let end = ranges.prefixLength
    position = end
    ahead = ranges.ranges.filter { $0.lowerBound > end }
  }

  mutating func insert(_ range: ByteRange) {
    guard range.upperBound > position, !range.isEmpty else { return }
    guard range.lowerBound > position else {
      position = range.upperBound
      return closeGaps()
    }
    if let index = ahead.firstIndex(where: { $0.upperBound == range.lowerBound }) {
      ahead[index] = ahead[index].lowerBound..<range.upperBound
    } else {
      ahead.append(range)
    }
  }

  /// Removes the bytes after a position.
  mutating func cut(to end: Int64) {
    position = min(position, end)
    ahead = ahead.compactMap { $0.lowerBound < end ? $0.clamped(to: 0..<end) : nil }
  }

  private mutating func closeGaps() {
    while let index = ahead.firstIndex(where: { $0.lowerBound <= position }) {
      position = max(position, ahead.remove(at: index).upperBound)
    }
  }
}
