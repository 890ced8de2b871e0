@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  /// A ranking that reverses the order of arrival and records its calls.
  private final class Backwards: Sendable {
    private let contexts = Mutex<[RankingContext]>([])

    var ranked: [RankingContext] { contexts.withLock { $0 } }

    func ranking(_ name: String = "backwards") -> Ranking {
      Ranking(name: name) { context in
        self.contexts.withLock { $0.append(context) }
        return Rank().ascending(1_000 - context.arrival)
      }
    }
  }

  func checkRanking(_ report: ConformanceReport) async {
    await report.check("arrival-ranks", "downloads rank by arrival until a store sets a ranking") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try ["a": 3, "b": 1, "c": 2].map { try Self.addition(DownloadID($0), order: $1) }, at: Self.start)
      try expectEqual(try await store.leased().map(\.id), ["b", "c", "a"], "the order")
    }
    await report.check("ranks-anew", "rank applies to all unfinished downloads, due or not, and to later additions") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e", "f", "g"])
      try await store.bring("b", to: .waiting) { $0.notBefore = Self.time(10) }
      try await store.bring("c", to: .failed)
      try await store.bring("d", to: .paused)
      try await store.bring("e", to: .cancelled)
      _ = try await store.leased(["f"])
      let before = try await store.records(DownloadQuery())
      let backwards = Backwards()
      try await store.rank(by: backwards.ranking())
      try expectEqual(Set(backwards.ranked), Set(before.map(\.rankingContext)), "the downloads ranked")
      let after = try await store.records(DownloadQuery())
      try expectEqual(
        after,
        before.map { record in
          var record = record
          record.rank = Rank().ascending(1_000 - record.arrival)
          return record
        }, "the records")
      _ = try await store.add([try Self.addition("h", order: 0), try Self.addition("i", order: 8)], at: Self.start)
      _ = try await store.transition(.all, .restart, at: Self.start)
      try expectEqual(
        try await store.leased(at: Self.time(10)).map(\.id), ["i", "g", "e", "d", "c", "b", "a", "h"], "the order")
    }
    await report.check("ranking-sees-all", "a ranking gets equal contexts for a download when it is added and later") {
      let (ledger, store) = try await opened()
      let backwards = Backwards()
      try await store.rank(by: backwards.ranking())
      _ = try await store.add([LedgerAddition(request: try Self.fullRequest("a"), arrival: 7)], at: Self.start)
      try await store.close()
      let second = try await ledger.open()
      try await second.rank(by: backwards.ranking("another"))
      let seen = backwards.ranked
      try expectEqual(seen.count, 2, "the number of calls")
      try expectEqual(seen.last, seen.first, "the later context")
      try expectEqual(seen.first, try await second.known("a").rankingContext, "the first context")
    }
    await report.check(
      "ranking-learns-size", "a save of another size ranks the download again, and a restart keeps the size"
    ) {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let ranking = Ranking(name: "shortest") { Rank().ascending($0.size.bytes ?? 500) }
      try await store.rank(by: ranking)
      // “a” learns its size when it goes back to waiting, “b” and “c” while they run.
      try await store.bring("a", to: .waiting) { $0.checkpoint.total = 900 }
      for (record, total) in zip(try await store.leased(["b", "c"]), [100, 800] as [ByteCount]) {
        var record = record
        record.checkpoint.total = total
        try expect(
          try await store.save(record, .checkpoint, at: Self.start), "the owner's save of “\(record.id)” was refused")
        try expectEqual(
          try await store.known(record.id).rank, ranking.rank(record.rankingContext), "the rank of “\(record.id)”")
        record.apply(.suspended)
        try expect(
          try await store.save(record, .state, at: Self.start), "the owner's save of “\(record.id)” was refused")
      }
      try expectEqual(try await store.leased().map(\.id), ["b", "d", "e", "c", "a"], "the order")
      for id in ["a", "b", "c"] as [DownloadID] {
        var record = try await store.known(id)
        record.apply(.pause)
        _ = try await store.save(record, .state, at: Self.start)
      }
      _ = try await store.transition(.ids(["a", "b"]), .restart, at: Self.start)
      _ = try await store.transition(.all, .resume, at: Self.start)
      try expectEqual(try await store.leased().map(\.id), ["b", "c", "a"], "the order after restarts of “a” and “b”")
      var again = try await store.known("c")
      again.apply(.pause)
      _ = try await store.save(again, .state, at: Self.start)
      _ = try await store.transition(.all, .restart, at: Self.start)
      try expectEqual(try await store.known("c").rank, Rank().ascending(800), "the rank after a restart of all")
    }
    await report.check("ranking-is-known", "an opening ranks again only when the ranking has another name") {
      let (ledger, first) = try await filled(["a", "b", "c"])
      try await first.rank(by: Backwards().ranking())
      try await first.close()
      let same = Backwards()
      let second = try await ledger.open()
      try await second.rank(by: same.ranking())
      try expectEqual(same.ranked.count, 0, "the number of downloads ranked again by the same ranking")
      _ = try await second.add([try Self.addition("d", order: 4)], at: Self.start)
      try await second.close()
      let other = try await ledger.open()
      try await other.rank(by: Ranking(name: "forwards") { Rank().ascending($0.arrival) })
      try expectEqual(try await other.leased().map(\.id), ["a", "b", "c", "d"], "the order with another ranking")
    }
    await report.check("ranking-is-replaced", "each later call of a store ranks again, also with the same name") {
      let (_, store) = try await filled(["a", "b", "c", "d"])
      try await store.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival) })
      let first = try await store.lease(
        LeaseRequest(now: Self.start, until: Self.time(60)) { $0.intent == Intent("a") ? .take : .stop })
      try expectEqual(first.map(\.id), ["a"], "the downloads leased before")
      try await store.rank(by: Ranking(name: "test") { Rank().ascending(9 - $0.arrival) })
      try expectEqual(try await store.leased().map(\.id), ["d", "c", "b"], "the order")
    }
    await report.check("ranking-is-mixed", "after a store has added with another ranking, the next opening ranks again")
    {
      let (ledger, first) = try await filled(["a", "b"])
      try await first.rank(by: Backwards().ranking())
      let second = try await ledger.open()
      _ = try await second.add([try Self.addition("c", order: 3)], at: Self.start)
      try await first.close()
      try await second.close()
      let third = try await ledger.open()
      try await third.rank(by: Backwards().ranking())
      try expectEqual(try await third.leased().map(\.id), ["c", "b", "a"], "the order")
    }
    await report.check("ranking-last-counts", "a ranking that replaces another during its work wins") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<4_500).map { try Self.addition(DownloadID("\($0)"), order: $0) }, at: Self.start)
      let first = Backwards()
      async let replaced: Void = store.rank(by: first.ranking())
      while first.ranked.isEmpty {
        try Task.checkCancellation()
        await Task.yield()
      }
      try await store.rank(by: Ranking(name: "forwards") { Rank().ascending($0.arrival) })
      try await replaced
      let leased = try await store.leased().map(\.arrival)
      try expect(leased == leased.sorted(), "the order is wrong; it starts with \(leased.prefix(5))")
    }
    await report.check(
      "ranking-many", "any number of downloads is ranked again, including those that are added meanwhile"
    ) {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<5_000).map { try Self.addition(DownloadID("\($0)"), order: $0) }, at: Self.start)
      async let ranked: Void = store.rank(by: Ranking(name: "test") { Rank().ascending(10_000 - $0.arrival) })
      for order in 5_000..<5_050 as Range<Int64> {
        _ = try await store.add([try Self.addition(DownloadID("\(order)"), order: order)], at: Self.start)
      }
      try await ranked
      let leased = try await store.leased().map(\.arrival)
      try expect(leased == (0..<5_050).reversed(), "the order is wrong; it starts with \(leased.prefix(5))")
    }
  }
}
