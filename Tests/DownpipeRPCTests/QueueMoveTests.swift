import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct QueueMoveTests {
  private typealias Entry = QueueMove.Entry

  /// The ids of the tests are numbers in the order of arrival.
  private static func arrival(_ entry: Entry) -> Int { Int(entry.id.rawValue) ?? 0 }

  private static func isBefore(_ left: Entry, _ right: Entry) -> Bool {
    if left.priority != right.priority { return left.priority > right.priority }
    if left.position != right.position { return left.position < right.position }
    return arrival(left) < arrival(right)
  }

  private static func rank(_ entry: Entry) -> Rank {
    QueueOrder().rank(
      RankingContext(
        id: entry.id, priority: entry.priority, arrival: Int64(arrival(entry)),
        metadata: [QueueOrder.metadataKey: String(entry.position)]))
  }

  private func entry(_ id: DownloadID, _ priority: Priority, _ position: Int64) -> Entry {
    Entry(id: id, priority: priority, position: position)
  }

  // MARK: Changes

  /// A queue with equal positions and several priorities.
  private static func randomQueue(_ generator: inout SeededGenerator) -> [Entry] {
    let count = Int.random(in: 1...25, using: &generator)
    let spreads: [Int64] = [1, 3, QueueOrder.step, 1 << 40]
    let spread = spreads[Int.random(in: 0..<spreads.count, using: &generator)]
    let start: Int64 = 1 << 50
    var queue: [Entry] = []
    for index in 0..<count {
      let priority = Priority(Int16.random(in: -1...1, using: &generator))
      let step = Int64.random(in: 0...Int64(count / 2), using: &generator)
      queue.append(Entry(id: DownloadID(String(index)), priority: priority, position: start + step * spread))
    }
    return queue.sorted(by: isBefore)
  }

  @Test(arguments: UInt64(1)...60)
  func movesMakeTheWantedOrder(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var queue = Self.randomQueue(&generator)
    for _ in 0..<40 {
      var wanted = queue
      let moved = wanted.remove(at: Int.random(in: 0..<wanted.count, using: &generator))
      let index = Int.random(in: 0...wanted.count, using: &generator)
      wanted.insert(moved, at: index)

      let changes = QueueMove.changes(wanted, moved: index)
      let changed = Dictionary(changes.map { ($0.id, $0) }) { $1 }
      #expect(changed.count == changes.count)
      #expect(changed[moved.id] != nil)
      // Only what is behind the moved download makes room for it, and keeps its priority.
      #expect(wanted.prefix(index).allSatisfy { changed[$0.id] == nil })
      #expect(wanted.dropFirst(index + 1).allSatisfy { $0.priority == (changed[$0.id] ?? $0).priority })

      let after = wanted.map { changed[$0.id] ?? $0 }
      #expect(after.sorted(by: Self.isBefore) == after)
      #expect(after.map { Self.rank($0) } == after.map { Self.rank($0) }.sorted())
      queue = after.sorted(by: Self.isBefore)
      guard queue.map({ $0.id }) == wanted.map({ $0.id }) else { return }
    }
  }

  @Test func betweenTwoWithRoomOnlyOneChanges() throws {
    let queue = [
      entry("0", .normal, 0), entry("3", .normal, 9000), entry("1", .normal, 5000), entry("2", .normal, 5001),
    ]
    let changes = QueueMove.changes(queue, moved: 1)
    let change = try #require(changes.first)
    #expect(changes.count == 1)
    #expect(change.id == "3")
    #expect((1..<5000).contains(change.position))
  }

  @Test func withoutRoomTheNextOnesMakeIt() {
    let queue = [
      entry("0", .normal, 100), entry("3", .normal, 900_000), entry("1", .normal, 101), entry("2", .normal, 102),
      entry("4", .normal, 1_000_000),
    ]
    #expect(QueueMove.changes(queue, moved: 1).map { $0.id } == ["3", "1", "2"])
  }

  @Test func atTheEndsOnlyOneChanges() {
    let first = [entry("2", .normal, 900), entry("0", .normal, 500), entry("1", .normal, 500)]
    #expect(QueueMove.changes(first, moved: 0).map { $0.id } == ["2"])
    let last = [entry("1", .normal, 500), entry("2", .normal, 500), entry("0", .normal, 400)]
    #expect(QueueMove.changes(last, moved: 2).map { $0.id } == ["0"])
  }

  @Test func thePriorityFollowsFromTheNeighbours() {
    let up = [entry("1", .low, 5), entry("0", .high, 9)]
    #expect(QueueMove.changes(up, moved: 0).map { $0.priority } == [.high])
    let down = [entry("1", .low, 5), entry("0", .high, 9)]
    #expect(QueueMove.changes(down, moved: 1).map { $0.priority } == [.low])
    let between = [entry("0", .high, 1), entry("1", .normal, 5), entry("2", .low, 9)]
    #expect(QueueMove.changes(between, moved: 1) == [entry("1", .normal, 5)])
    let alone = [entry("0", .high, 1)]
    #expect(QueueMove.changes(alone, moved: 0) == alone)
  }

  // MARK: The order

  @Test func ranksAreInTheOrderOfPositions() {
    let contexts = [
      RankingContext(id: "a", priority: .high, arrival: 9, metadata: [QueueOrder.metadataKey: "9000"]),
      RankingContext(id: "b", arrival: 5, metadata: [QueueOrder.metadataKey: "0"]),
      RankingContext(id: "c", arrival: 4, metadata: [QueueOrder.metadataKey: "1"]),
      RankingContext(id: "d", arrival: 2, metadata: [QueueOrder.metadataKey: "1024"]),
      RankingContext(id: "e", arrival: 3, metadata: [QueueOrder.metadataKey: "1024"]),
      RankingContext(id: "f", arrival: 1, metadata: [QueueOrder.metadataKey: String(Int64.max)]),
      RankingContext(id: "g", priority: .low, arrival: 0, metadata: [QueueOrder.metadataKey: "0"]),
    ]
    let ranks = contexts.map { QueueOrder().rank($0) }
    #expect(ranks == ranks.sorted())
    #expect(Set(ranks).count == ranks.count)
  }

  @Test func withoutAPositionTheTimeOfAddingCounts() {
    let early = Date(timeIntervalSince1970: 1_000_000_000)
    let late = Date(timeIntervalSince1970: 1_000_000_001)
    func rank(_ date: Date, _ metadata: [String: String] = [:], arrival: Int64 = 1) -> Rank {
      QueueOrder().rank(RankingContext(id: "a", arrival: arrival, createdAt: date, metadata: metadata))
    }
    #expect(rank(early, arrival: 2) < rank(late, arrival: 1))
    #expect(rank(early, arrival: 1) < rank(early, arrival: 2))
    #expect(rank(late, [QueueOrder.metadataKey: "nonsense"]) == rank(late))
    #expect(rank(late, [QueueOrder.metadataKey: String(QueueOrder.position(of: early))]) == rank(early))
  }

  @Test(arguments: [-1, 0, Double.nan, -Double.infinity])
  func datesWithoutAPosition(seconds: Double) {
    #expect(QueueOrder.position(of: Date(timeIntervalSince1970: seconds)) == 0)
  }

  @Test func datesFarAwayHaveAPosition() {
    #expect(QueueOrder.position(of: .distantFuture) > QueueOrder.position(of: Date(timeIntervalSince1970: 2e9)))
    #expect(QueueOrder.position(of: Date(timeIntervalSince1970: .infinity)) < Int64.max / 10 * 9)
  }

  // MARK: The end

  @Test func newDownloadsComeBehindAllOthers() {
    let end = QueueEnd()
    let now = Date(timeIntervalSince1970: 1_000_000_000)
    let dates: [Date] = [
      now, now, now, now - 3600, .distantPast, Date(timeIntervalSince1970: .nan), now, now + 1, now,
    ]
    let positions = dates.map { end.next(at: $0) }
    #expect(positions[0] == QueueOrder.position(of: now))
    #expect(positions[7] == QueueOrder.position(of: now + 1))
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $1 - $0 >= QueueOrder.step })
  }

  @Test func downloadsThatAreAddedAtOnceHavePositionsOfTheirOwn() async {
    let end = QueueEnd()
    let now = Date(timeIntervalSince1970: 1_000_000_000)
    let positions = await withTaskGroup(of: [Int64].self) { group -> Set<Int64> in
      for _ in 0..<4 { group.addTask { (0..<250).map { _ in end.next(at: now) } } }
      var all: Set<Int64> = []
      for await some in group { all.formUnion(some) }
      return all
    }
    #expect(positions.count == 1000)
  }

  // MARK: A downloader

  private func downloader(_ ids: [DownloadID], priority: [DownloadID: Priority] = [:]) async throws -> Downloader {
    let source = FakeSource(everyURL: FakeSource.Script(RPCFixture.bytes))
    let storage = FakeStorage()
    let ledger = MemoryLedger()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      QueueOrder()
      storage
      ledger
    }
    // They are added at the same time, so that all positions are equal.
    let requests = try ids.map { id in
      try DownloadRequest("https://example.org/\(id)", id: id, priority: priority[id] ?? .normal)
    }
    try await downloader.add(contentsOf: requests, paused: true)
    return downloader
  }

  private func order(_ downloader: Downloader) async throws -> [DownloadID] {
    try await downloader.statuses(QueueMove.waiting()).map { $0.id }
  }

  @Test(
    arguments: [
      ("d", .index(0), ["d", "a", "b", "c"], 0), ("a", .index(2), ["b", "c", "a", "d"], 2),
      ("b", .index(1), ["a", "b", "c", "d"], 1), ("a", .index(99), ["b", "c", "d", "a"], 3),
      ("a", .index(.max), ["b", "c", "d", "a"], 3), ("c", .index(-7), ["c", "a", "b", "d"], 0),
      ("b", .steps(1), ["a", "c", "b", "d"], 2), ("c", .steps(-2), ["c", "a", "b", "d"], 0),
      ("c", .steps(-99), ["c", "a", "b", "d"], 0), ("c", .steps(.min), ["c", "a", "b", "d"], 0),
      ("b", .steps(99), ["a", "c", "d", "b"], 3), ("b", .steps(0), ["a", "b", "c", "d"], 1),
      ("a", .fromEnd(0), ["b", "c", "d", "a"], 3), ("a", .fromEnd(-1), ["b", "c", "a", "d"], 2),
      ("d", .fromEnd(-3), ["d", "a", "b", "c"], 0), ("d", .fromEnd(-99), ["d", "a", "b", "c"], 0),
      ("b", .fromEnd(.min), ["b", "a", "c", "d"], 0), ("b", .fromEnd(5), ["a", "c", "d", "b"], 3),
      ("b", .fromEnd(.max), ["a", "c", "d", "b"], 3),
    ] as [(DownloadID, QueueMove.Target, [DownloadID], Int)])
  func targets(id: DownloadID, target: QueueMove.Target, order: [DownloadID], index: Int) async throws {
    let downloader = try await downloader(["a", "b", "c", "d"])
    let moved = try await QueueMove(downloader: downloader).move(id, to: target)
    #expect(moved == index)
    let told = try await self.order(downloader)
    #expect(told == order)
    await downloader.shutdown()
  }

  @Test func moreStepsThanThereAreNumbersLeadToTheEnd() async throws {
    let downloader = try await downloader(["a", "b", "c", "d"])
    let moved = try await QueueMove(downloader: downloader).move("b", to: .steps(.max))
    #expect(moved == 3)
    let told = try await order(downloader)
    #expect(told == ["a", "c", "d", "b"])
    await downloader.shutdown()
  }

  @Test func onlyWhatWaitsIsMoved() async throws {
    let downloader = try await downloader(["a", "b", "c"])
    try await downloader.cancel("b")
    let ended = try await QueueMove(downloader: downloader).move("b", to: .index(0))
    #expect(ended == nil)
    let unknown = try await QueueMove(downloader: downloader).move("x", to: .index(0))
    #expect(unknown == nil)
    let told = try await order(downloader)
    #expect(told == ["a", "c"])
    await downloader.shutdown()
  }

  @Test func manyMovesWithPriorities() async throws {
    let ids: [DownloadID] = ["a", "b", "c", "d", "e", "f", "g"]
    let downloader = try await downloader(ids, priority: ["a": .low, "d": .high, "e": .low])
    var wanted = try await order(downloader)
    #expect(wanted == ["d", "b", "c", "f", "g", "a", "e"])
    var generator = SeededGenerator(seed: 7)
    let move = QueueMove(downloader: downloader)
    for _ in 0..<40 {
      let id = wanted.remove(at: Int.random(in: 0..<wanted.count, using: &generator))
      let index = Int.random(in: 0...wanted.count, using: &generator)
      wanted.insert(id, at: index)
      let moved = try await move.move(id, to: .index(index))
      #expect(moved == index)
      let told = try await order(downloader)
      try #require(told == wanted)
    }
    await downloader.shutdown()
  }

  /// The order of the queue is the order of the starts.
  @Test func movedDownloadsStartInTheirOrder() async throws {
    let fixture = try await RPCFixture()
    try await fixture.downloader.settings(RPCSettings.self).update { $0.options["max-concurrent-downloads"] = "1" }
    let ids: [DownloadID] = ["a", "b", "c", "d"]
    let requests = try ids.map { try DownloadRequest("https://example.org/\($0)", id: $0) }
    try await fixture.downloader.add(contentsOf: requests, paused: true)
    _ = try await QueueMove(downloader: fixture.downloader).move("d", to: .index(1))
    try await fixture.downloader.resumeAll()
    try await fixture.downloader.waitUntilIdle()
    #expect(fixture.source.requests.map { $0.id } == ["a", "d", "b", "c"])
    await fixture.downloader.shutdown()
  }
}
