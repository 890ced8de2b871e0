/// The bytes of a file that are on disk, those that are being fetched, and by which connection.
///
/// The missing bytes are divided into *segments*. The body of one reply is a *feed*; each feed has a segment, which it
/// fills from the front. A feed that reaches the end of its segment goes on into bytes that no other feed has, or
/// compares the first bytes behind its end with those that another feed has written (the *seam*), and ends. Two feeds
/// may fill one segment: the bytes of the first to arrive are written, and the other's are compared.
///
/// A value without I/O. Every chunk of every feed asks it what to do: ``next(_:count:)``, then ``wrote(_:by:)``.
struct SegmentTable: Sendable {
  typealias FeedID = Int

  /// The bytes that one connection delivers.
  struct Feed: Sendable {
    /// The place that it comes from; see ``SegmentPlaces``.
    let place: Int
    /// The key of its segment.
    let segment: Int
    /// The offset of the next byte of its body.
    var position: Int64
    /// The offset up to which it compares bytes of others, once it has filled its segment.
    var seamEnd: Int64?
    /// The number of bytes that it has written.
    var wrote: Int64 = 0
    /// The bytes that it is writing now.
    var writing: ByteRange?
    /// The offset after the last byte that it has written, or compared before its segment: what it brings next is of the
    /// same body. `nil` before that.
    var joint: Int64?
    /// Whether its bytes are not wanted any more.
    var isRevoked = false
    /// Whether its bytes do not count, because its place was dropped.
    var isDropped = false
    var meter: FeedMeter
  }

  struct Segment: Sendable {
    /// The offset of the first byte.
    let start: Int64
    /// The offset of the first byte that no feed has claimed.
    var claimed: Int64
    /// The offset after the last byte.
    var end: Int64
  }

  /// What to do with the next bytes of a feed.
  enum Step: Sendable, Hashable {
    /// Write these bytes, and say so with ``SegmentTable/wrote(_:by:)``.
    case write(ByteRange)
    /// Compare these bytes with those on disk.
    case compare(ByteRange)
    /// Ignore these bytes: another feed is writing them.
    case skip(ByteRange)
    /// End the feed: its bytes are not needed any more.
    case end
  }

  /// The number of bytes that are compared where the bytes of two feeds meet.
  static let seam: Int64 = 65_536
  /// The fewest bytes that show that two feeds agree, when the other feed has written no more so far.
  static let fewestCompared: Int64 = 4096

  /// The size of the file.
  let total: Int64
  /// The bytes on disk.
  private(set) var written: ByteRangeSet
  /// The number of bytes on disk.
  private(set) var writtenCount: Int64
  private(set) var segments = OrderedTable<Int, Segment>()
  private(set) var feeds = OrderedTable<FeedID, Feed>()
  /// The bytes that places other than the first have brought, by place.
  private(set) var brought: [Int: ByteRangeSet] = [:]
  /// The offsets at which the bytes of two feeds meet and have not been compared.
  private(set) var seams: Set<Int64> = []
  /// The bytes that were removed and that the ledger may still claim: nothing is written there.
  private var reserved = ByteRangeSet()
  /// The number of removals.
  private(set) var removals = 0
  private var lastKey = 0

  /// - Parameter written: The bytes on disk.
  init(total: Int64, written: ByteRangeSet) {
    self.total = total
    self.written = written
    writtenCount = written.byteCount
  }

  var isComplete: Bool { writtenCount == total }
  /// The offset of the first missing byte.
  var front: Int64 { written.prefixLength }
  /// Whether the first bytes of the file are there, as many as are compared.
  var hasFront: Bool { front >= min(Self.seam, total) }

  // MARK: Feeds

  /// Lets a feed fill a range of missing bytes that no other feed has.
  /// - Parameter position: The offset at which its body begins: at the range, or before it to compare bytes on disk.
  mutating func add(_ range: ByteRange, from position: Int64, place: Int, at now: Duration) -> FeedID {
    lastKey += 1
    segments[lastKey] = Segment(start: range.lowerBound, claimed: range.lowerBound, end: range.upperBound)
    feeds[lastKey] = Feed(place: place, segment: lastKey, position: position, meter: FeedMeter(at: now))
    return lastKey
  }

  /// Lets another feed fill a segment beside the one that it has. Its body begins before the first missing byte, at bytes
  /// on disk to compare, as far as there are any.
  mutating func double(_ segment: Int, place: Int, at now: Duration) -> FeedID? {
    guard let claimed = segments[segment]?.claimed else { return nil }
    lastKey += 1
    feeds[lastKey] = Feed(
      place: place, segment: segment, position: startOfComparison(before: claimed), meter: FeedMeter(at: now))
    return lastKey
  }

  /// Ends a segment earlier, so that other feeds can have the rest.
  mutating func shorten(_ segment: Int, to end: Int64) {
    guard let old = segments[segment], end >= old.claimed, end < old.end else { return }
    segments[segment]?.end = end
  }

  /// Makes the next chunk of a feed the end of it.
  mutating func revoke(_ id: FeedID) { feeds[id]?.isRevoked = true }

  /// Removes a feed that has ended. The missing bytes of its segment are free unless another feed has it, too.
  mutating func remove(_ id: FeedID) {
    guard let feed = feeds.removeValue(forKey: id) else { return }
    if !feeds.values.contains(where: { $0.segment == feed.segment }) { segments[feed.segment] = nil }
  }

  /// Removes the bytes behind seams that no feed is about to compare. They are fetched again, once the ledger does not
  /// claim them any longer, and compared with the bytes before and behind them.
  mutating func reopenSeams() {
    var lost = ByteRangeSet()
    for seam in seams where !feeds.contains(where: { $1.joint == seam && isComparing($0) }) {
      lost.insert(contentsOf: zone(of: seam))
    }
    for place in brought.keys { brought[place]?.subtract(lost) }
    forget(lost)
  }

  /// Removes bytes, and keeps their places free until ``release(removals:)``.
  private mutating func forget(_ lost: ByteRangeSet) {
    guard !lost.isEmpty else { return }
    written.subtract(lost)
    reserved.formUnion(lost)
    removals += 1
    writtenCount = written.byteCount
    seams = seams.filter { written.contains($0) && written.contains($0 - 1) }
  }

  /// The bytes behind a seam that are compared.
  func zone(of seam: Int64) -> ByteRange { seam..<min(total, seam + Self.seam) }

  mutating func measure(only id: FeedID? = nil, _ body: (inout Feed) -> Void) {
    for (key, feed) in feeds where id == nil || key == id {
      var feed = feed
      body(&feed)
      feeds[key] = feed
    }
  }

  // MARK: Bytes

  /// What to do with the next bytes of a feed, of which `count` have arrived.
  mutating func next(_ id: FeedID, count: Int) -> Step {
    while true {
      guard let feed = feeds[id], !feed.isRevoked, let segment = segments[feed.segment] else { return .end }
      let position = feed.position
      if let seamEnd = feed.seamEnd { return compareSeam(id, at: position, until: seamEnd, count: count) }
      if position < segment.claimed {
        let range = position..<min(position + Int64(count), segment.claimed)
        feeds[id]?.position = range.upperBound
        guard written.contains(range) else { return .skip(range) }
        feeds[id]?.joint = range.upperBound
        return .compare(range)
      }
      if position < segment.end {
        let range = position..<min(position + Int64(count), segment.end)
        feeds[id]?.position = range.upperBound
        feeds[id]?.writing = range
        segments[feed.segment]?.claimed = range.upperBound
        return .write(range)
      }
      guard goOn(id, feed, at: position) else { return .end }
    }
  }

  private mutating func compareSeam(_ id: FeedID, at position: Int64, until end: Int64, count: Int) -> Step {
    guard position < end else { return .end }
    let arrived = position + Int64(count)
    if let run = written.ranges.first(where: { $0.contains(position) }) {
      let range = position..<min(arrived, end, run.upperBound)
      feeds[id]?.position = range.upperBound
      return .compare(range)
    }
    guard let other = feeds.values.compactMap(\.writing).first(where: { $0.contains(position) }) else { return .end }
    let range = position..<min(arrived, end, other.upperBound)
    feeds[id]?.position = range.upperBound
    return .skip(range)
  }

  /// Lets a feed that has filled its segment take the bytes behind it, or compare them.
  /// - Returns: `false` when there is nothing left for it to do.
  private mutating func goOn(_ id: FeedID, _ feed: Feed, at position: Int64) -> Bool {
    if position >= total { return false }
    let isBeingWritten = feeds.values.contains { $0.writing?.contains(position) == true }
    if isBeingWritten || written.contains(position) {
      let end = zone(of: position).upperBound
      feeds[id]?.seamEnd = end
      return true
    }
    if let neighbour = segments.first(where: { $0.key != feed.segment && $0.value.claimed == position }) {
      // Its connection has not brought anything yet, and this one is here.
      for (other, theirs) in feeds where theirs.segment == neighbour.key { feeds[other]?.isRevoked = true }
      segments[neighbour.key] = nil
      segments[feed.segment]?.end = neighbour.value.end
      return true
    }
    guard let gap = gaps.first(where: { $0.lowerBound == position }) else { return false }
    segments[feed.segment]?.end = gap.upperBound
    return true
  }

  /// Records that a feed has written the bytes that it was told to write.
  mutating func wrote(_ range: ByteRange, by id: FeedID) {
    guard let feed = feeds[id] else { return }
    feeds[id]?.writing = nil
    if feed.isDropped { return }
    // The bytes on either side of which another feed has written meet those of this one.
    if range.lowerBound > 0, feed.joint != range.lowerBound, written.contains(range.lowerBound - 1) {
      seams.insert(range.lowerBound)
    }
    if range.upperBound < total, written.contains(range.upperBound) { seams.insert(range.upperBound) }
    feeds[id]?.joint = range.upperBound
    feeds[id]?.wrote += range.length
    written.insert(contentsOf: range)
    writtenCount += range.length
    if feed.place > 0 { brought[feed.place, default: ByteRangeSet()].insert(contentsOf: range) }
  }

  /// Gives removed bytes free, which the ledger does not claim any longer.
  mutating func release(removals: Int) { if removals == self.removals { reserved = ByteRangeSet() } }

  /// Records that bytes of a feed equal those on disk: its own bytes before a seam, and the other's behind it, are of one
  /// file.
  mutating func compared(_ range: ByteRange, by id: FeedID) {
    guard let feed = feeds[id], let end = feed.seamEnd, let joint = feed.joint else { return }
    if range.upperBound >= min(end, joint + Self.fewestCompared) { seams.remove(joint) }
  }

  /// Records that a feed could not write.
  mutating func failed(_ id: FeedID) { feeds[id]?.writing = nil }

  // MARK: Free bytes

  /// The missing bytes that no feed has, in ascending order.
  var gaps: [ByteRange] {
    var free = ByteRangeSet(0..<total).subtracting(written).subtracting(reserved)
    for segment in segments.values where segment.claimed < segment.end {
      free.remove(contentsOf: segment.claimed..<segment.end)
    }
    for feed in feeds.values {
      // A write that is on its way must not meet that of another feed.
      if let writing = feed.writing { free.remove(contentsOf: writing) }
    }
    return Array(free.ranges)
  }

  // MARK: Places that lie

  /// Removes all bytes that a place has brought, and ends its feeds.
  /// - Returns: The bytes that are missing again.
  mutating func drop(_ place: Int) -> ByteRangeSet {
    for (id, feed) in feeds where feed.place == place {
      feeds[id]?.isRevoked = true
      feeds[id]?.isDropped = true
      if !feeds.contains(where: { $0.value.segment == feed.segment && $0.value.place != place }) {
        segments[feed.segment] = nil
      }
    }
    let lost = brought.removeValue(forKey: place) ?? ByteRangeSet()
    forget(lost)
    return lost
  }
}
