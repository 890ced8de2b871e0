@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// A ledger with three downloads, the first of which is damaged, and the generation of that one.
  private func damaged() async throws -> (ledger: any Ledger, store: any LedgerStore, generation: Int64) {
    let (ledger, store) = try await opened()
    _ = try await store.add(
      try ["bad", "a", "b"].enumerated().map { index, id in
        var addition = try Self.addition(DownloadID(id), order: Int64(index), tags: ["t"])
        addition.request.intent = .prefetch
        return addition
      }, at: Self.start)
    let generation = try await store.known("bad").generation
    try await damage?(ledger, "bad")
    return (ledger, store, generation)
  }

  func checkDamage(_ report: ConformanceReport) async {
    let applies = damage != nil

    await report.check(
      "damage-is-told", "a damaged record is listed, and a call for it throws", when: applies
    ) {
      let (_, store, _) = try await damaged()
      try expectEqual(try await store.damaged().map(\.id), ["bad"], "the damaged records")
      try expect(try await store.damaged().allSatisfy { !$0.reason.isEmpty }, "the reason is empty")
      try await expectError(.ledger, when: "reading the damaged record") { _ = try await store.record("bad") }
    }
    await report.check("damage-is-left-out", "calls for several records leave out damaged ones", when: applies) {
      let (_, store, _) = try await damaged()
      for order in [DownloadQuery.Order.arrival, .rank, .latestChange] {
        let found = try await store.records(DownloadQuery(order: order))
        try expectEqual(Set(found.map(\.id)), ["a", "b"], "the records found in the order \(order.rawValue)")
      }
      try expectEqual(
        Set(try await store.records(DownloadQuery(tag: "t")).map(\.id)), ["a", "b"], "the records found by tag")
      try expectEqual(try await store.records(DownloadQuery(limit: 2)).count, 2, "the number of records on a page")
      try expectEqual(
        Set(try await store.records(of: ["bad", "a", "b"]).map(\.id)), ["a", "b"], "the records found by id")
      try expectEqual(
        try await store.records(after: .min, limit: 2).map(\.id), ["a", "b"], "the records by generation")
    }
    await report.check(
      "damage-blocks-no-lease", "leases skip damaged records, also at the head of the queue", when: applies
    ) {
      let (ledger, store, _) = try await damaged()
      try expectEqual(try await store.leased().map(\.id), ["a", "b"], "the downloads leased")
      _ = try await store.add([try Self.addition("c", order: 3)], at: Self.start)
      try expectEqual(try await store.leased().map(\.id), ["c"], "the downloads leased afterwards")
      try await store.rank(by: Ranking(name: "test") { _ in Rank() })
      try await store.renewLeases(until: Self.time(99))
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.reclaim(at: Self.time(100)), 0, "the number of records reclaimed")
      try expectEqual(
        Set(try await second.leased().map(\.id)), ["a", "b", "c"], "the downloads that another opening leases")
    }
    await report.check("damage-is-replaced", "adding the id of a damaged record replaces the record", when: applies) {
      let (_, store, old) = try await damaged()
      let outcomes = try await store.add([try Self.addition("bad", order: 9)], at: Self.time(1))
      try expectEqual(outcomes.map(\.isNew), [true], "isNew")
      let record = try await store.known("bad")
      try expectEqual(record, outcomes.first?.record, "the record")
      try expect(record.generation > old, "its generation is \(record.generation), before it was \(old)")
      try expectEqual(try await store.damaged().map(\.id), [], "the damaged records")
      try expectEqual(try await store.counts(.all).values.reduce(0, +), 3, "the number of records")
    }
    await report.check("damage-is-not-restored", "a damaged record is known to records that are put", when: applies) {
      let (_, store, _) = try await damaged()
      var record = try await store.known("a")
      record.request.id = "bad"
      try expectEqual(try await store.restore([record], at: Self.start), [false], "whether it was put")
      try expectEqual(try await store.damaged().map(\.id), ["bad"], "the damaged records")
    }
    for (name, selection) in [("id", LedgerSelection.ids(["bad"])), ("all", .all)] {
      await report.check("damage-is-removed-by-\(name)", "a damaged record can be removed", when: applies) {
        let (_, store, generation) = try await damaged()
        let removed = try await store.remove(selection)
        let expected: Set<DownloadID> = selection == .all ? ["bad", "a", "b"] : ["bad"]
        try expectEqual(Set(removed.map(\.id)), expected, "the records removed")
        try expectEqual(
          removed.first { $0.id == "bad" }?.generation, generation, "the generation of the damaged record")
        try expectEqual(try await store.damaged().map(\.id), [], "the damaged records")
        try expectEqual(try await store.record("bad"), nil, "the record")
        try expectEqual(
          try await store.counts(.all).values.reduce(0, +), 3 - removed.count, "the number of records left")
      }
    }
  }
}
