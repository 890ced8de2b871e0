internal import Foundation

/// Which places have brought the bytes on disk, as far as is known.
struct ByteOrigins: Sendable {
  /// Few: a file has at most as many places as its request and its server name.
  private var ranges: [(place: URL, bytes: ByteRangeSet)] = []

  var isEmpty: Bool { ranges.isEmpty }

  /// Notes that a place has brought bytes, or has sent the same ones as those on disk.
  mutating func note(_ bytes: ByteRangeSet, from place: URL) {
    guard !bytes.isEmpty else { return }
    for index in ranges.indices { ranges[index].bytes.subtract(bytes) }
    ranges.removeAll { $0.bytes.isEmpty }
    if let index = ranges.firstIndex(where: { $0.place == place }) {
      ranges[index].bytes.formUnion(bytes)
    } else {
      ranges.append((place, bytes))
    }
  }

  /// The places of some bytes on disk, and the bytes whose place is not known.
  func origins(of bytes: ByteRangeSet) -> (known: [(place: URL, bytes: ByteRangeSet)], unknown: ByteRangeSet) {
    var unknown = bytes
    var known: [(place: URL, bytes: ByteRangeSet)] = []
    for (place, theirs) in ranges {
      var mine = theirs
      mine.formIntersection(bytes)
      guard !mine.isEmpty else { continue }
      known.append((place, mine))
      unknown.subtract(mine)
    }
    return (known, unknown)
  }
}
