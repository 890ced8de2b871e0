import DownpipeCore
import Foundation
import Testing

/// Ranks of any number of parts: what does not fit into 128 bits is cut.
@Suite struct RankTests {
  @Test("a part that does not fit is cut, and its highest bits decide")
  func cut() {
    let first = Rank().ascending(1).appending(2, bits: 40)
    // 24 bits are left for a number of 64.
    let ranks = [0, 1 << 20, 1 << 40, 1 << 50, .max].map { first.ascending($0) }
    #expect(ranks == ranks.sorted())
    #expect(ranks[0] == ranks[1], "they differ only in bits that are cut")
    #expect(ranks[1] < ranks[3] && ranks[3] < ranks[4])
    #expect(ranks[4] < Rank().ascending(1).appending(3, bits: 40), "the parts before decide first")
  }

  @Test("a full rank stays as it is")
  func full() {
    let full = Rank().ascending(1).ascending(2)
    #expect(full.ascending(3) == full)
    #expect(full.descending(Date()).descending(.high).ascending("name", bytes: 8) == full)
    #expect(full.appending(0, bits: 1) == full)
  }

  @Test("numbers of bits and bytes that do not exist are moved into their range", arguments: [Int.min, -1, 0])
  func tooFew(count: Int) {
    #expect(Rank().appending(7, bits: count) == Rank())
    #expect(Rank().ascending("ab", bytes: count) == Rank().ascending("ab", bytes: 1))
  }

  @Test("numbers of bits and bytes that are too large are moved into their range", arguments: [65, 200, Int.max])
  func tooMany(count: Int) {
    #expect(Rank().appending(7, bits: count) == Rank().appending(7, bits: 64))
    #expect(Rank().ascending("ab", bytes: count) == Rank().ascending("ab", bytes: 8))
  }
}
