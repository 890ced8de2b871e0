import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// What one connection does with its chunks, and how connections share the bytes.
@Suite(.endsHangs)
struct SegmentTableTests {
  private static let unit = SegmentTable.smallest

  private func table(_ total: Int64 = 64 * unit, written: ByteRangeSet = ByteRangeSet()) -> SegmentTable {
    SegmentTable(total: total, written: written)
  }

  private func feed(_ table: inout SegmentTable, _ range: ByteRange, from start: Int64? = nil, place: Int = 0) -> Int {
    table.add(range, from: start ?? range.lowerBound, place: place, at: .zero)
  }

  @Test func aFeedWritesItsSegmentAndEndsAtTheEndOfTheFile() {
    var table = table(100)
    let id = feed(&table, 0..<100)
    #expect(table.next(id, count: 60) == .write(0..<60))
    table.wrote(0..<60, by: id)
    #expect(table.next(id, count: 60) == .write(60..<100))
    table.wrote(60..<100, by: id)
    #expect(table.isComplete)
    #expect(table.next(id, count: 1) == .end)
  }

  @Test func bytesOnDiskBeforeASegmentAreCompared() {
    var table = table(200, written: ByteRangeSet(0..<100))
    let id = feed(&table, 100..<200, from: 40)
    #expect(table.next(id, count: 80) == .compare(40..<100))
    #expect(table.next(id, count: 20) == .write(100..<120))
  }

  @Test func aFeedComparesTheSeamAndEnds() {
    let seam = SegmentTable.seam
    var table = table(10 * seam, written: ByteRangeSet((4 * seam)..<(10 * seam)))
    let id = feed(&table, 0..<(4 * seam))
    #expect(table.next(id, count: Int(5 * seam)) == .write(0..<(4 * seam)))
    table.wrote(0..<(4 * seam), by: id)
    #expect(table.isComparing(id))
    #expect(table.next(id, count: Int(3 * seam)) == .compare((4 * seam)..<(5 * seam)))
    #expect(table.seams == [4 * seam])
    table.compared((4 * seam)..<(5 * seam), by: id)
    #expect(!table.isComparing(id) && table.seams.isEmpty)
    #expect(table.next(id, count: 1) == .end)
    #expect(table.isComplete)
  }

  @Test func aFeedGoesOnIntoTheSegmentOfANeighbourWithoutBytes() {
    var table = table(100)
    let first = feed(&table, 0..<50)
    let second = feed(&table, 50..<100)
    #expect(table.next(first, count: 50) == .write(0..<50))
    table.wrote(0..<50, by: first)
    #expect(table.next(first, count: 50) == .write(50..<100))
    #expect(table.next(second, count: 10) == .end)
  }

  @Test func aFeedGoesOnIntoBytesThatAFailedNeighbourLeft() {
    var table = table(100)
    let first = feed(&table, 0..<50)
    let second = feed(&table, 50..<100)
    #expect(table.next(second, count: 10) == .write(50..<60))
    table.wrote(50..<60, by: second)
    table.remove(second)
    #expect(table.gaps == [60..<100])
    #expect(table.next(first, count: 50) == .write(0..<50))
    table.wrote(0..<50, by: first)
    // The neighbour's bytes are the seam; what is behind them is for another connection.
    #expect(table.next(first, count: 50) == .compare(50..<60))
    #expect(table.next(first, count: 40) == .end)
  }

  @Test func ofTwoFeedsOfASegmentTheFirstToArriveWrites() throws {
    var table = table(100)
    let slow = feed(&table, 0..<100)
    let fastFound = table.double(slow, place: 0, at: .zero)
    let fast = try #require(fastFound)
    #expect(table.next(fast, count: 80) == .write(0..<80))
    #expect(table.next(slow, count: 10) == .skip(0..<10))
    table.wrote(0..<80, by: fast)
    #expect(table.next(slow, count: 10) == .compare(10..<20))
    #expect(table.next(fast, count: 20) == .write(80..<100))
    table.wrote(80..<100, by: fast)
    #expect(table.isComplete)
  }

  @Test func theSecondFeedOfASegmentComparesWhatTheFirstHasWritten() throws {
    let seam = SegmentTable.seam
    var table = table(4 * seam)
    let slow = feed(&table, 0..<(4 * seam))
    #expect(table.next(slow, count: Int(2 * seam)) == .write(0..<(2 * seam)))
    table.wrote(0..<(2 * seam), by: slow)
    let found = table.double(slow, place: 1, at: .zero)
    let fast = try #require(found)
    #expect(table.feeds[fast]?.position == seam)
    // A byte that the slow one has brought since is compared, too.
    #expect(table.next(slow, count: 1) == .write((2 * seam)..<(2 * seam + 1)))
    table.wrote((2 * seam)..<(2 * seam + 1), by: slow)
    #expect(table.next(fast, count: Int(3 * seam)) == .compare(seam..<(2 * seam + 1)))
    #expect(table.next(fast, count: Int(2 * seam) - 1) == .write((2 * seam + 1)..<(4 * seam)))
    table.wrote((2 * seam + 1)..<(4 * seam), by: fast)
    #expect(table.isComplete && table.seams.isEmpty)
  }

  @Test func aWriteOnItsWayIsNotGivenToAnother() {
    var table = table(100)
    let id = feed(&table, 0..<100)
    #expect(table.next(id, count: 30) == .write(0..<30))
    table.revoke(id)
    table.shorten(id, to: 30)
    #expect(table.gaps == [30..<100])
    table.wrote(0..<30, by: id)
    table.remove(id)
    #expect(table.gaps == [30..<100])
  }

  @Test func aConnectionTakesHalfOfTheRest() throws {
    var table = table()
    _ = feed(&table, 0..<(64 * Self.unit))
    let shareFound = table.share(for: 1, .init(speed: nil, setup: .zero))
    let share = try #require(shareFound)
    #expect(share == (32 * Self.unit)..<(64 * Self.unit))
  }

  @Test func severalConnectionsShareTheRestEqually() throws {
    var table = table()
    _ = feed(&table, 0..<(64 * Self.unit))
    var starts: [Int64] = []
    for count in (1...7).reversed() {
      let shareFound = table.share(for: count, .init(speed: nil, setup: .zero))
      let share = try #require(shareFound)
      starts.append(share.lowerBound / Self.unit)
      _ = feed(&table, share)
    }
    #expect(starts == [8, 16, 24, 32, 40, 48, 56])
    #expect(table.gaps.isEmpty)
  }

  @Test func aFastConnectionTakesMoreOfASlowOnesRest() throws {
    var table = table(100 * Self.unit)
    let id = feed(&table, 0..<(100 * Self.unit))
    table.begin(id, at: .zero)
    #expect(table.next(id, count: 1000) == .write(0..<1000))
    table.wrote(0..<1000, by: id)
    table.measure(at: .seconds(1))
    let shareFound = table.share(for: 1, .init(speed: 99_000, setup: .zero))
    let share = try #require(shareFound)
    #expect(share.lowerBound < 2 * Self.unit)
    #expect(share.upperBound == 100 * Self.unit)
  }

  @Test func aSmallRestIsNotDivided() {
    var table = table(Self.unit)
    _ = feed(&table, 0..<Self.unit)
    #expect(table.share(for: 1, .init(speed: nil, setup: .zero)) == nil)
  }

  @Test func aRestThatTakesLongIsRequestedTwice() {
    var table = table(Self.unit)
    let id = feed(&table, 0..<Self.unit)
    table.begin(id, at: .zero)
    #expect(table.next(id, count: 100) == .write(0..<100))
    table.wrote(0..<100, by: id)
    table.measure(at: .seconds(1))
    #expect(table.segmentToDouble(.init(speed: nil, setup: .zero)) == nil)
    #expect(table.segmentToDouble(.init(speed: 1_000_000, setup: .seconds(1))) == id)
    #expect(table.segmentToDouble(.init(speed: 1_000_000, setup: .seconds(10_000))) == nil)
    _ = table.double(id, place: 0, at: .zero)
    #expect(table.segmentToDouble(.init(speed: 1_000_000, setup: .seconds(1))) == nil)
  }

  @Test func whatALyingPlaceBroughtIsMissingAgain() {
    var table = table(100)
    let honest = feed(&table, 0..<50)
    let liar = feed(&table, 50..<100, place: 1)
    #expect(table.next(liar, count: 30) == .write(50..<80))
    table.wrote(50..<80, by: liar)
    #expect(table.next(liar, count: 10) == .write(80..<90))
    #expect(table.next(honest, count: 50) == .write(0..<50))
    table.wrote(0..<50, by: honest)
    #expect(table.next(honest, count: 10) == .compare(50..<60))
    #expect(table.wrongPlace(honest, at: 50) == 1)
    #expect(table.drop(1) == ByteRangeSet(50..<80))
    table.release(removals: 1)
    // What it was writing meanwhile does not count.
    #expect(table.gaps == [50..<80, 90..<100])
    table.wrote(80..<90, by: liar)
    table.remove(liar)
    #expect(table.gaps == [50..<100])
    #expect(table.next(liar, count: 1) == .end)
  }

  @Test func requestsGoOnToTheNextBytesOnDisk() {
    let seam = SegmentTable.seam
    let table = table(100 * seam, written: ByteRangeSet([0..<(10 * seam), (50 * seam)..<(60 * seam)]))
    #expect(table.request(for: (10 * seam)..<(20 * seam)) == RequestedRange(from: 9 * seam, to: 51 * seam))
    #expect(table.request(for: (70 * seam)..<(80 * seam)) == RequestedRange(from: 70 * seam))
    #expect(table.request(for: (60 * seam)..<(80 * seam)) == RequestedRange(from: 59 * seam))
  }

  @Test(arguments: 0..<200 as Range<UInt64>) func everyByteIsWrittenOnceWhateverConnectionsDo(seed: UInt64) {
    var world = SegmentWorld(seed: seed)
    world.run()
    #expect(world.problems.first == nil)
    let isComplete = world.table.isComplete
    #expect(isComplete)
    #expect(world.mixedUnnoticed == [])
  }

  @Test func aSeamThatNoFeedComparesIsKnown() {
    let seam = SegmentTable.seam
    var table = table(4 * seam)
    let first = feed(&table, 0..<(2 * seam))
    let second = feed(&table, (2 * seam)..<(4 * seam))
    #expect(table.next(first, count: Int(2 * seam)) == .write(0..<(2 * seam)))
    table.wrote(0..<(2 * seam), by: first)
    #expect(table.isComparing(first))
    table.remove(first)
    #expect(table.next(second, count: Int(2 * seam)) == .write((2 * seam)..<(4 * seam)))
    table.wrote((2 * seam)..<(4 * seam), by: second)
    #expect(table.isComplete && table.seams == [2 * seam])
    #expect(table.proven == ByteRangeSet([0..<(2 * seam), (3 * seam)..<(4 * seam)]))
    table.reopenSeams()
    // The ledger may claim the bytes behind it: they are not overwritten before it has forgotten them.
    #expect(table.gaps == [])
    let removals = table.removals
    #expect(removals == 1)
    table.release(removals: removals)
    #expect(table.gaps == [(2 * seam)..<(3 * seam)])
    let shared = table.share(for: 1, .init(speed: nil, setup: .zero))
    #expect(shared == (2 * seam)..<(3 * seam))
    #expect(table.request(for: (2 * seam)..<(3 * seam)) == RequestedRange(from: seam))
    let again = feed(&table, (2 * seam)..<(3 * seam), from: seam)
    #expect(table.next(again, count: Int(seam)) == .compare(seam..<(2 * seam)))
    #expect(table.next(again, count: Int(seam)) == .write((2 * seam)..<(3 * seam)))
    table.wrote((2 * seam)..<(3 * seam), by: again)
    #expect(table.next(again, count: Int(seam)) == .compare((3 * seam)..<(4 * seam)))
    table.compared((3 * seam)..<(4 * seam), by: again)
    #expect(table.isComplete && table.seams.isEmpty)
  }

  @Test func droppedBytesAreFreeOnceTheLedgerKnows() {
    var table = table(100)
    let liar = feed(&table, 0..<100, place: 1)
    #expect(table.next(liar, count: 60) == .write(0..<60))
    table.wrote(0..<60, by: liar)
    #expect(table.drop(1) == ByteRangeSet(0..<60))
    #expect(table.gaps == [60..<100])
    let removals = table.removals
    #expect(removals == 1)
    table.release(removals: removals)
    #expect(table.gaps == [0..<100])
  }

  @Test func aFeedThatHasStoppedIsReplacedAndDoubled() {
    var table = table(4 * Self.unit)
    let slow = feed(&table, 0..<(2 * Self.unit))
    table.begin(slow, at: .zero)
    #expect(table.next(slow, count: Int(2 * Self.unit) - 1) == .write(0..<(2 * Self.unit - 1)))
    table.wrote(0..<(2 * Self.unit - 1), by: slow)
    for second in 1...100 { table.measure(at: .seconds(second)) }
    let fast = SegmentTable.Expectation(speed: 1, setup: .seconds(1))
    #expect(table.segmentToDouble(fast) == slow)
    #expect(table.feedToReplace { _ in fast } == slow)
    #expect(table.segmentToDouble(.init(speed: 1e-300, setup: .zero)) == slow)
  }
}
