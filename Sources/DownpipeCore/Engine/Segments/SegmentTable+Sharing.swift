// How the missing bytes are shared between connections.
extension SegmentTable {
  /// The fewest bytes for which another connection is opened.
  static let smallest: Int64 = 256 << 10
  /// The fewest bytes that a connection gets while there is enough for all.
  static let usual: Int64 = 1 << 20

  /// What a connection is expected to bring.
  struct Expectation: Sendable, Hashable {
    /// Bytes per second; `nil` when it is not known.
    var speed: Double?
    /// The time from its request to its first byte.
    var setup: Duration
  }

  /// Returns missing bytes for a new feed: those that no feed has, or a part of the segment that would take longest.
  ///
  /// The segment is divided so that its feed and the new ones end at the same time, as far as speeds are known.
  /// - Parameter count: The number of connections that will ask for bytes now.
  mutating func share(for count: Int, _ expected: Expectation) -> ByteRange? {
    if let range = shareOfGaps(count) { return range }
    guard let (key, left) = slowest(expected), left.bytes >= 2 * Self.smallest, let segment = segments[key] else {
      return nil
    }
    // Not worth a connection.
    if let time = left.time, time < expected.setup * 2 { return nil }
    // Servers send the first bytes of each body faster: what has come so far says nothing about speeds.
    var kept = Double(segment.end - segment.start) / Double(count + 1) - Double(segment.claimed - segment.start)
    if let mine = expected.speed, let theirs = left.speed, mine > 0 {
      kept = Double(left.bytes) * theirs / (theirs + mine * Double(count))
    }
    let bytes = min(max(Int64(kept), Self.smallest), left.bytes - Self.smallest)
    let end = Self.aligned(segment.claimed + bytes)
    guard end > segment.claimed else { return nil }
    shorten(key, to: end)
    return shareOfGaps(count)
  }

  /// Segments meet between two pages of memory and blocks of the disk.
  private static func aligned(_ offset: Int64) -> Int64 { offset / seam * seam }

  private func shareOfGaps(_ count: Int) -> ByteRange? {
    let gaps = gaps
    guard let first = gaps.first else { return nil }
    let share = gaps.reduce(0) { $0 + $1.length } / Int64(max(1, count))
    let length = max(share, Self.usual)
    let end = Self.aligned(first.lowerBound + length)
    // No rest that is too small for a connection of its own.
    return first.upperBound < end + Self.smallest ? first : first.lowerBound..<end
  }

  /// Returns the segment whose rest is worth asking for a second time: a new connection is expected to bring it in less
  /// than half the time. The first to arrive wins.
  func segmentToDouble(_ expected: Expectation) -> Int? {
    guard let speed = expected.speed, speed > 0, let (key, left) = slowest(expected),
      feeds.values.count(where: { $0.segment == key }) == 1, let time = left.time
    else { return nil }
    let again = expected.setup + FeedMeter.time(for: left.bytes, at: speed)
    return again * 2 < time ? key : nil
  }

  /// What is left of a segment, and for how long at the speed of its feeds.
  private struct Rest {
    var bytes: Int64
    var speed: Double?
    var time: Duration?
  }

  /// The segment whose rest will take longest.
  private func slowest(_ expected: Expectation) -> (key: Int, Rest)? {
    var found: (key: Int, rest: Rest)?
    for (key, segment) in segments where segment.claimed < segment.end {
      let mine = feeds.values.filter { $0.segment == key && !$0.isRevoked }
      guard !mine.isEmpty else { continue }
      let bytes = segment.end - segment.claimed
      let speed = mine.compactMap(\.meter.speed).max()
      let assumed = speed ?? expected.speed
      let time = assumed.map { FeedMeter.time(for: bytes, at: $0) }
      let rest = Rest(bytes: bytes, speed: speed, time: time)
      let isSlower =
        if let best = found?.rest.time, let time { time > best } else { bytes > found?.rest.bytes ?? 0 }
      if isSlower || found == nil { found = (key, rest) }
    }
    return found.map { ($0.key, $0.rest) }
  }

  /// The bytes to request for a feed: before its range those that are compared with the bytes on disk, and after it all
  /// that are missing, so that it can go on when a neighbour fails.
  ///
  /// - Parameter isPaced: Whether transfers are slowed down here: what a server has sent by then, and is not
  ///   wanted, would be much of the file. Then only the bytes of the range and those of the seam behind it are requested.
  func request(for range: ByteRange, isPaced: Bool = false) -> RequestedRange {
    let start = startOfComparison(before: range.lowerBound)
    if isPaced {
      let end = range.upperBound + Self.seam
      return RequestedRange(from: start, to: end < total ? end : nil)
    }
    guard let next = written.ranges.first(where: { $0.lowerBound >= range.upperBound }) else {
      return RequestedRange(from: start)
    }
    let end = min(next.upperBound, next.lowerBound + Self.seam)
    return RequestedRange(from: start, to: end == total ? nil : end)
  }

  /// The offset at which a body begins whose first missing byte is at `offset`: before it, at the bytes on disk that are
  /// compared.
  func startOfComparison(before offset: Int64) -> Int64 {
    let before = written.ranges.first { $0.upperBound == offset }?.lowerBound ?? offset
    return max(before, offset - Self.seam)
  }

  /// Begins to measure a feed, whose reply has come.
  mutating func begin(_ id: FeedID, at now: Duration) {
    measure(only: id) { $0.meter.begin(at: $0.position, now) }
  }

  /// Measures all feeds.
  mutating func measure(at now: Duration) {
    measure { feed in if feed.seamEnd == nil { feed.meter.measure(feed.position, at: now) } }
  }

  /// The feed that is slower than a share of what another connection would bring, with some time to go; `nil` if none is.
  ///
  /// - Parameter expected: What another connection is expected to bring, given the place of the feed.
  func feedToReplace(_ expected: (_ place: Int) -> Expectation?) -> FeedID? {
    var found: (id: FeedID, ratio: Double)?
    for (id, feed) in feeds where !feed.isRevoked && feed.seamEnd == nil && feed.meter.count >= 2 {
      guard let speed = feed.meter.speed, let segment = segments[feed.segment], let new = expected(feed.place),
        let better = new.speed, better > 0
      else { continue }
      let bytes = segment.end - segment.claimed
      let old = FeedMeter.time(for: bytes, at: speed)
      let other = FeedMeter.time(for: bytes, at: better) + new.setup
      guard speed < better / 2, old > .seconds(1), other * 2 < old else { continue }
      if speed / better < found?.ratio ?? 1 { found = (id, speed / better) }
    }
    return found?.id
  }
}
