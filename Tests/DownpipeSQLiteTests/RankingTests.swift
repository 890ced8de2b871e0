#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Which ranking the ranks in a ledger are of.
  @Suite(.endsHangs)
  struct RankingTests {
    private static let backwards = Ranking(name: "backwards") { Rank().ascending(1_000_000 - $0.arrival) }

    private func lease(_ store: any LedgerStore) async throws -> [Int64] {
      try await store.lease(LeaseRequest(now: start, until: time(60)) { _ in .take }).map(\.arrival)
    }

    private func names(_ path: String) async throws -> [String: String] {
      let other = try DatabaseQueue(path: path)
      defer { try? other.close() }
      return try await other.read { db in
        Dictionary(
          uniqueKeysWithValues: try Row.fetchAll(db, sql: "SELECT name, value FROM setting").map {
            ($0["name"], $0["value"])
          })
      }
    }

    /// If a process ends between two batches, the ledger has no name of a ranking, and the next process starts again.
    @Test(arguments: [0, 1, 2])
    func aCrashWhileRankingIsHealed(_ batches: Int) async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let ledger = SQLiteLedger(path)
        let first = try await ledger.open()
        let count = LedgerConnection.rankingBatch * 2
        try await first.rank(by: .arrival)
        _ = try await first.add(try (0..<count).map { try addition(DownloadID("\($0)"), Int64($0)) }, at: start)
        try await first.close()
        #expect(try await names(path) == ["ranking": "arrival"])

        let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: path, owner: "crashes")
        let number = try #require(
          try await queue.commit { try $0.beginRanking(by: Self.backwards, always: false) })
        var last = Int64.min
        for _ in 0..<batches {
          last = try await queue.commit { [last] connection in
            let page = try connection.rankable(after: last)
            #expect(try connection.rank(page, as: number))
            return page.last ?? last
          }
        }
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
        #expect(try await names(path)["ranking"] == nil)

        // Even the old ranking does not treat the ranks as its own.
        for ranking in [Ranking.arrival, Self.backwards] {
          let next = try await ledger.open()
          try await next.rank(by: ranking)
          #expect(try await names(path) == ["ranking": ranking.name])
          let order = try await next.records(DownloadQuery(order: .rank)).map(\.arrival)
          #expect(order.count == count)
          #expect(order == order.sorted { ranking.name == "arrival" ? $0 < $1 : $0 > $1 })
          try await next.close()
        }
      }
    }

    /// Another store adds downloads with its own ranking while this one ranks again.
    @Test func anotherRankingInTheMiddleIsNoticed() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: path, owner: "me")
        let other = try await SQLiteLedger(path).open()
        let begin: @Sendable (LedgerConnection) throws -> Int? = {
          try $0.beginRanking(by: Self.backwards, always: false)
        }
        let first = try #require(try await queue.commit(begin))
        _ = try await other.add([try addition("a", 1)], at: start)
        try await queue.commit { try $0.endRanking(as: first) }
        #expect(try await names(path) == [:])
        // Another store ranks all downloads in between: the ranks that this one writes after it are a mixture.
        let second = try #require(try await queue.commit(begin))
        try await other.rank(by: Ranking(name: "other") { Rank().ascending($0.arrival) })
        #expect(try await names(path) == ["ranking": "other"])
        #expect(try await queue.commit { try $0.rank([1], as: second) })
        try await queue.commit { try $0.endRanking(as: second) }
        #expect(try await names(path) == [:])
        // Another store with the same ranking does no harm.
        let third = try #require(try await queue.commit(begin))
        try await other.rank(by: Self.backwards)
        _ = try await other.add([try addition("b", 2)], at: start)
        try await queue.commit { try $0.endRanking(as: third) }
        #expect(try await names(path) == ["ranking": "backwards"])
        // A replaced ranking ends at once and does not write its name.
        let fourth = try #require(try await queue.commit { try $0.beginRanking(by: Self.backwards, always: true) })
        let fifth = try #require(try await queue.commit { try $0.beginRanking(by: .arrival, always: true) })
        #expect(try await queue.commit { try !$0.rank([1], as: fourth) })
        try await queue.commit { try $0.endRanking(as: fourth) }
        #expect(try await queue.commit { try $0.rank([1], as: fifth) })
        try await queue.commit { try $0.endRanking(as: fifth) }
        #expect(try await names(path) == ["ranking": "arrival"])
        try await other.close()
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
      }
    }

    /// The name of the ranking is deleted in the transaction that adds with another ranking, and restored if that is
    /// rolled back.
    @Test func anUndoneAdditionTakesNoNameAway() async throws {
      struct Refused: Error {}
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: path, owner: "me")
        let other = try await SQLiteLedger(path).open()
        try await other.rank(by: Self.backwards)
        for fails in [true, false] {
          try? await queue.commit { connection in
            _ = try connection.add(try addition("a"), at: start)
            if fails { throw Refused() }
          }
          #expect(try await names(path) == (fails ? ["ranking": "backwards"] : [:]))
        }
        try await other.close()
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
      }
    }

    /// A damaged record does not stop a ranking.
    @Test func whatCannotBeReadIsLeftOut() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let store = try await ledger.open()
        _ = try await store.add(try (0..<3).map { try addition(DownloadID("\($0)"), Int64($0)) }, at: start)
        try await damage(ledger, "1", "url = 'http://['")
        try await store.rank(by: Self.backwards)
        #expect(try await lease(store) == [2, 0])
        try await store.close()
      }
    }
  }
#endif
