import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// The position up to which there are no gaps.
@Suite(.endsHangs)
struct StoredFrontTests {
  @Test func rangesInOrderMoveTheFront() {
    var front = StoredFront()
    for start in stride(from: 0 as Int64, to: 100, by: 10) {
      front.insert(start..<(start + 10))
      #expect(front.position == start + 10)
    }
  }

  @Test func whatIsOnDiskAtTheStartCounts() {
    var ranges = ByteRangeSet(0..<50)
    ranges.insert(contentsOf: 60..<70)
    var front = StoredFront(ranges)
    #expect(front.position == 50)
    front.insert(50..<60)
    #expect(front.position == 70)
    var hole = StoredFront(ByteRangeSet(10..<20))
    #expect(hole.position == 0)
    hole.insert(0..<10)
    #expect(hole.position == 20)
  }

  @Test func aCutRemovesTheBytesBehindIt() {
    var front = StoredFront(ByteRangeSet(0..<50))
    front.insert(60..<80)
    front.cut(to: 70)
    front.insert(50..<60)
    #expect(front.position == 70)
    front.cut(to: 20)
    #expect(front.position == 20)
    front.insert(30..<40)
    #expect(front.position == 20)
  }

  @Test("the front is the prefix of the set of all ranges, in any order", arguments: 0..<50 as Range<UInt64>)
  func equalsTheSet(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var front = StoredFront()
    var set = ByteRangeSet()
    for _ in 0..<200 {
      let start = Int64.random(in: 0..<100, using: &generator)
      if Int.random(in: 0..<20, using: &generator) == 0 {
        front.cut(to: start)
        set.remove(contentsOf: start..<1000)
      } else {
        let range = start..<(start + Int64.random(in: 0..<20, using: &generator))
        front.insert(range)
        set.insert(contentsOf: range)
      }
      #expect(front.position == set.prefixLength)
    }
  }
}
