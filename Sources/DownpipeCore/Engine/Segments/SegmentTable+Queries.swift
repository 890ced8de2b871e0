// What the conductor asks of the table.
extension SegmentTable {
  /// The bytes on disk that have been compared where the bytes of two feeds meet: those that another process may
  /// continue.
  var proven: ByteRangeSet {
    var proven = written
    for seam in seams { proven.remove(contentsOf: zone(of: seam)) }
    return proven
  }

  /// Whether all bytes of a feed's segment are claimed.
  func hasFilled(_ id: FeedID) -> Bool {
    feeds[id].flatMap { segments[$0.segment] }.map { $0.claimed >= $0.end } ?? true
  }

  /// Whether a feed has filled its segment and is about to compare the bytes behind it.
  func isComparing(_ id: FeedID) -> Bool {
    guard let feed = feeds[id], !feed.isRevoked, feed.position < total else { return false }
    if let seamEnd = feed.seamEnd { return feed.position < seamEnd }
    return segments[feed.segment].map { feed.position >= $0.end } ?? false
  }

  /// The feeds whose bytes are wanted, the slowest first.
  var slowest: [FeedID] {
    feeds.filter { !$0.value.isRevoked }
      .sorted { ($0.value.meter.speed ?? 0, $0.key) < ($1.value.meter.speed ?? 0, $1.key) }.map(\.key)
  }

  /// Whether the bytes in a range were brought by the first place, or were on disk before.
  func isOfFirstPlace(_ range: ByteRange) -> Bool {
    brought.values.allSatisfy { $0.isDisjoint(ByteRangeSet(range)) }
  }

  /// The place that is wrong when the bytes of a feed differ from those on disk at an offset: of two places the one that
  /// comes later. `nil` when both are the first place, whose file has changed then.
  func wrongPlace(_ id: FeedID, at offset: Int64) -> Int? {
    let theirs = brought.filter { $0.value.contains(offset) }.keys.max() ?? 0
    let latest = max(theirs, feeds[id]?.place ?? 0)
    return latest > 0 ? latest : nil
  }
}
