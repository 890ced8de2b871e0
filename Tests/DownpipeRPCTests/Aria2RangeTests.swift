import HangLimit
import Testing

@testable import DownpipeRPC

/// The parts of lists that clients ask for.
@Suite(.endsHangs)
struct Aria2RangeTests {
  static let most = Int.max
  static let least = Int.min

  /// An upper bound of 0 stands for no part.
  private func part(_ lower: Int, _ upper: Int) -> Range<Int>? { upper > 0 ? lower..<upper : nil }

  @Test(
    arguments: [
      (0, 10, 5, 0, 5), (0, 3, 5, 0, 3), (2, 2, 5, 2, 4), (4, 1, 5, 4, 5), (4, 9, 5, 4, 5), (5, 1, 5, 0, 0),
      (Self.most, 1, 5, 0, 0), (0, 0, 5, 0, 0), (0, -1, 5, 0, 0), (0, Self.least, 5, 0, 0), (0, 1, 0, 0, 0),
      (0, Self.most, 5, 0, 5), (0, Self.most, Self.most, 0, Self.most), (Self.most, 1, Self.most, 0, 0),
      (7, 1, Self.most, 7, 8),
    ] as [(Int, Int, Int, Int, Int)])
  func fromTheBeginning(offset: Int, count: Int, size: Int, lower: Int, upper: Int) {
    let told = Aria2.range(offset, count, of: size)
    #expect(told?.range == part(lower, upper))
    #expect(told?.isReversed != true)
  }

  /// The last one is at -1, and is told first.
  @Test(
    arguments: [
      (-1, 1, 5, 4, 5), (-1, 2, 5, 3, 5), (-1, 10, 5, 0, 5), (-2, 2, 5, 2, 4), (-5, 1, 5, 0, 1), (-5, 9, 5, 0, 1),
      (-6, 1, 5, 0, 0), (-1, 0, 5, 0, 0), (-1, -1, 5, 0, 0), (-1, 1, 0, 0, 0), (Self.least, 1, 5, 0, 0),
      (-1, Self.most, 5, 0, 5), (-1, Self.most, Self.most, 0, Self.most), (Self.least, Self.most, Self.most, 0, 0),
      (Self.least, Self.most, 5, 0, 0),
    ] as [(Int, Int, Int, Int, Int)])
  func fromTheEnd(offset: Int, count: Int, size: Int, lower: Int, upper: Int) {
    let told = Aria2.range(offset, count, of: size)
    #expect(told?.range == part(lower, upper))
    #expect(told?.isReversed != false)
  }

  /// A part ends with the list, also where the sum of offset and count is beyond all numbers.
  @Test func sumsBeyondAllNumbers() {
    let most = Self.most
    #expect(Aria2.range(3, most, of: 5)?.range == 3..<5)
    #expect(Aria2.range(1, most, of: most)?.range == 1..<most)
    // `aria2.tellWaiting` with the largest offsets.
    #expect(Aria2.range(most - 1, 1000, of: most)?.range == most - 1..<most)
  }
}
