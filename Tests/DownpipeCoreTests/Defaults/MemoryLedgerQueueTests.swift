import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

@Suite(.endsHangs)
struct MemoryLedgerQueueTests {
  private func key(_ rank: Int64, generation: Int64 = 1) throws -> MemoryLedgerQueue.Key {
    let request = try DownloadRequest("https://example.org/\(rank)", id: DownloadID("\(rank)/\(generation)"))
    return MemoryLedgerQueue.Key(
      DownloadRecord(
        request: request, generation: generation, arrival: rank, rank: Rank().ascending(rank),
        createdAt: Date(timeIntervalSince1970: 0)))
  }

  private func visited(_ queue: inout MemoryLedgerQueue, _ visit: (MemoryLedgerQueue.Key) -> MemoryLedgerQueue.Visit)
    -> [Int64]
  {
    var keys: [Int64] = []
    queue.scan { key in
      keys.append(key.arrival)
      return visit(key)
    }
    return keys
  }

  @Test func visitsInOrderOfRankAndEqualKeysOnce() throws {
    var queue = MemoryLedgerQueue()
    for rank in [5, 1, 3, 1, 4, 3] as [Int64] { queue.append(try key(rank)) }
    #expect(visited(&queue) { _ in .keep } == [1, 3, 4, 5])
    #expect(visited(&queue) { $0.arrival == 3 ? .drop : .keep } == [1, 3, 4, 5])
    #expect(visited(&queue) { _ in .keep } == [1, 4, 5])
  }

  @Test func keepsWhatFollowsAStop() throws {
    var queue = MemoryLedgerQueue()
    for rank in 1...6 as ClosedRange<Int64> { queue.append(try key(rank)) }
    #expect(visited(&queue) { $0.arrival < 3 ? .drop : ($0.arrival == 3 ? .keep : .stop) } == [1, 2, 3, 4])
    #expect(visited(&queue) { _ in .keep } == [3, 4, 5, 6])
  }

  @Test func tidyingRemovesObsoleteAndEqualKeys() throws {
    var queue = MemoryLedgerQueue()
    for rank in [2, 1, 2, 2, 3] as [Int64] { queue.append(try key(rank)) }
    queue.tidy { $0.arrival == 3 }
    #expect(queue.count == 2)
    #expect(visited(&queue) { _ in .keep } == [1, 2])
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func agreesWithASortedList(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var queue = MemoryLedgerQueue()
    var reference: Set<Int64> = []
    for _ in 0..<300 {
      switch Int.random(in: 0..<4, using: &generator) {
      case 0, 1:
        let rank = Int64.random(in: 0..<200, using: &generator)
        queue.append(try key(rank))
        reference.insert(rank)
      case 2:
        // Takes a few from the front, some of the ones it passes stay.
        var left = Int.random(in: 0..<5, using: &generator)
        var expected = reference.sorted()[...]
        var dropped: Set<Int64> = []
        queue.scan { key in
          #expect(key.arrival == expected.popFirst())
          if left == 0 { return .stop }
          left -= 1
          if key.arrival % 2 == 0 { return .keep }
          dropped.insert(key.arrival)
          return .drop
        }
        reference.subtract(dropped)
      default:
        let gone = Int64.random(in: 0..<200, using: &generator)
        reference.remove(gone)
        queue.tidy { $0.arrival == gone }
      }
    }
    #expect(visited(&queue) { _ in .keep } == reference.sorted())
  }

  @Test func aPausedAndResumedDownloadDoesNotFillTheQueue() async throws {
    var state = MemoryLedgerState()
    let start = Date(timeIntervalSince1970: 0)
    state.open("owner")
    let request = try DownloadRequest("https://example.org/a", id: "a")
    _ = try state.add([LedgerAddition(request: request, arrival: 1)], owner: "owner", at: start)
    for _ in 0..<5_000 {
      _ = state.transition(.ids(["a"]), .pause, owner: "owner", at: start)
      _ = state.transition(.ids(["a"]), .resume, owner: "owner", at: start)
    }
    #expect(state.queueCount <= 1_100)
    let leased = state.lease(LeaseRequest(now: start, until: start) { _ in .take }, owner: "owner")
    #expect(leased.map(\.id) == ["a"])
    #expect(state.counts(.all) == [.transferring: 1])
  }
}
