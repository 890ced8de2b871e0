import DownpipeTesting

@testable import DownpipeCore

/// Connections that deliver chunks of any size in any order, fail, stall and lie, over one table.
struct SegmentWorld {
  private struct Connection {
    let id: SegmentTable.FeedID
    let place: Int
    /// The end of its body.
    let end: Int64
    var writing: ByteRange?
  }

  private static let liar = 2
  private(set) var table: SegmentTable
  private(set) var problems: [String] = []
  private let total: Int64
  private var random: SeededGenerator
  private var connections: [Connection] = []
  /// The place that wrote each block of bytes.
  private var owners: [Int64: Int] = [:]
  private var now = Duration.zero
  private var isLiarOut = false
  /// All bytes are handled in blocks, so that the world stays small.
  private static let block: Int64 = 1 << 14

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    total = Self.block * Int64.random(in: 1...2000, using: &random)
    var written = ByteRangeSet()
    if Bool.random(using: &random) {
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let start = Self.block * Int64.random(in: 0..<(total / Self.block), using: &random)
        written.insert(contentsOf: start..<min(total, start + Self.block * Int64.random(in: 1...200, using: &random)))
      }
    }
    table = SegmentTable(total: total, written: written)
    for range in written.ranges {
      for block in stride(from: range.lowerBound, to: range.upperBound, by: Int(Self.block)) { owners[block] = 0 }
    }
  }

  mutating func run() {
    for _ in 0..<200_000 where !table.isComplete && problems.isEmpty {
      now += .milliseconds(10)
      if connections.count < 6 { open() }
      guard !connections.isEmpty else { continue }
      let index = Int.random(in: connections.indices, using: &random)
      switch Int.random(in: 0..<100, using: &random) {
      case 0: close(index)
      case 1: table.revoke(connections[index].id)
      case 2: table.measure(at: now)
      default: deliver(index)
      }
      check()
    }
  }

  /// The offsets at which the bytes of a place that lies and those of another meet, and which are not known to be
  /// uncompared.
  var mixedUnnoticed: [Int64] {
    owners.keys.filter { block in
      guard let before = owners[block - Self.block], let after = owners[block] else { return false }
      return (before == Self.liar) != (after == Self.liar) && !table.seams.contains(block)
    }
  }

  private mutating func open() {
    let place = isLiarOut ? Int.random(in: 0...1, using: &random) : Int.random(in: 0...2, using: &random)
    let expected = SegmentTable.Expectation(
      speed: Bool.random(using: &random) ? 1e6 : nil, setup: .milliseconds(Int.random(in: 0...100, using: &random)))
    var id: SegmentTable.FeedID?
    var end: Int64?
    if let range = table.share(for: Int.random(in: 1...4, using: &random), expected) {
      let request = table.request(for: range)
      end = request.end
      id = table.add(range, from: request.start, place: place, at: now)
    } else if let segment = table.segmentToDouble(expected) {
      id = table.double(segment, place: place, at: now)
    }
    guard let id else { return }
    table.begin(id, at: now)
    connections.append(Connection(id: id, place: place, end: end ?? total))
  }

  /// Ends a connection, which finishes a write first.
  private mutating func close(_ index: Int) {
    finishWrite(index)
    table.remove(connections.remove(at: index).id)
  }

  private mutating func deliver(_ index: Int) {
    if connections[index].writing != nil { return finishWrite(index) }
    let connection = connections[index]
    let left = connection.end - (table.feeds[connection.id]?.position ?? connection.end)
    guard left > 0 else { return close(index) }
    let count = min(left, Self.block * Int64.random(in: 1...30, using: &random))
    switch table.next(connection.id, count: Int(count)) {
    case .end: close(index)
    case .skip: break
    case .compare(let range): compare(range, index)
    case .write(let range):
      connections[index].writing = range
      if Bool.random(using: &random) { finishWrite(index) }
    }
  }

  private mutating func finishWrite(_ index: Int) {
    guard let range = connections[index].writing else { return }
    connections[index].writing = nil
    let connection = connections[index]
    let isDropped = table.feeds[connection.id]?.isDropped ?? true
    for block in stride(from: range.lowerBound, to: range.upperBound, by: Int(Self.block)) {
      if owners[block] != nil { problems.append("block \(block) was written twice") }
      if !isDropped { owners[block] = connection.place }
    }
    table.wrote(range, by: connection.id)
  }

  private mutating func compare(_ range: ByteRange, _ index: Int) {
    let connection = connections[index]
    for block in stride(from: range.lowerBound, to: range.upperBound, by: Int(Self.block)) {
      guard let owner = owners[block] else {
        problems.append("block \(block) was compared before it was written")
        continue
      }
      guard (owner == Self.liar) != (connection.place == Self.liar) else { continue }
      if table.wrongPlace(connection.id, at: block) != Self.liar {
        problems.append("block \(block): the wrong place lies")
      }
      isLiarOut = true
      let lost = table.drop(Self.liar)
      table.release(removals: table.removals)
      for range in lost.ranges {
        for block in stride(from: range.lowerBound, to: range.upperBound, by: Int(Self.block)) { owners[block] = nil }
      }
      return
    }
  }

  private mutating func check() {
    if table.writtenCount != table.written.byteCount { problems.append("the number of bytes is wrong") }
    if Int64(owners.count) * Self.block != table.writtenCount { problems.append("bytes are missing") }
  }
}
