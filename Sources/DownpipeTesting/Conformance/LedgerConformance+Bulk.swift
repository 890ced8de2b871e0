import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkTransitions(_ report: ConformanceReport) async {
    await report.check("transition-moves", "transition applies an event wherever it means something, all at once") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      try await store.bring("b", to: .waiting, Self.fill)
      try await store.bring("c", to: .finished)
      try await store.bring("d", to: .paused)
      try await store.bring("e", to: .failed)
      let result = try await store.transition(.all, .pause, at: Self.time(4))
      try expectEqual(result.count, 2, "how many were moved")
      try expectEqual(Set(result.ids), ["a", "b"], "which were moved")
      try expectEqual(try await store.known("a").phase, .paused, "the phase of what was waiting")
      try expectEqual(try await store.known("b").updatedAt, Self.time(4), "the time of the change")
      try expectEqual(try await store.known("b").notBefore, nil, "the due time of what was moved")
      try expectEqual(try await store.known("b").checkpoint, Self.fullCheckpoint, "the checkpoint of what was moved")
      try expectEqual(try await store.known("c").phase, .finished, "the phase of what was not meant")
      try expectEqual(try await store.counts(tag: nil)[.paused] ?? 0, 3, "the count of the phase")
    }
    await report.check("transition-to-waiting", "what is resumed is due at once and loses its error") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("a", to: .failed, Self.fill)
      try await store.bring("b", to: .paused, Self.fill)
      try await store.bring("c", to: .waiting, Self.fill)
      let result = try await store.transition(.all, .resume, at: Self.time(1))
      try expectEqual(result.count, 3, "how many were moved")
      for id: DownloadID in ["a", "b", "c"] {
        let record = try await store.known(id)
        try expectEqual(record.phase, .waiting, "the phase of “\(id)”")
        try expectEqual(record.error, nil, "the error of “\(id)”")
        try expectEqual(record.notBefore, nil, "the due time of “\(id)”")
        try expectEqual(record.consecutiveFailures, 0, "the failures in a row of “\(id)”")
      }
      try expectEqual(try await store.known("a").checkpoint, Self.fullCheckpoint, "the checkpoint of what had failed")
      try expectEqual(try await store.known("b").checkpoint, Self.fullCheckpoint, "the checkpoint of what was paused")
      try expectEqual(try await store.leased(at: Self.time(1)).count, 3, "how many can be leased at once")
    }
    await report.check("restart-forgets", "what is restarted begins anew, whatever became of it") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let phases: [(DownloadID, DownloadState.Phase)] = [
        ("a", .waiting), ("b", .paused), ("c", .failed), ("d", .cancelled), ("e", .finished),
      ]
      for (id, phase) in phases { try await store.bring(id, to: phase, Self.fill) }
      let finished = try await store.known("e")
      let result = try await store.transition(.all, .restart, at: Self.time(1))
      try expectEqual(Set(result.ids), ["a", "b", "c", "d"], "what was restarted")
      for id in result.ids {
        var expected = DownloadRecord(
          request: try Self.request(id), generation: try await store.known(id).generation,
          arrival: try await store.known(id).arrival, rank: try await store.known(id).rank, createdAt: Self.start)
        expected.wasInterrupted = true
        expected.updatedAt = Self.time(1)
        try expectEqual(try await store.known(id), expected, "the record of “\(id)”")
      }
      try expectEqual(try await store.known("e"), finished, "the record of what has finished")
    }
    await report.check("paused-together", "resumeTogether means what was paused together, and nothing else") {
      for selection in [LedgerSelection.all, .tag("t"), .ids(["a", "b", "c"])] {
        let (_, store) = try await opened()
        _ = try await store.add(
          try ["a", "b", "c"].enumerated().map {
            try Self.addition(DownloadID($1), order: Int64($0), tags: ["t"])
          }, at: Self.start)
        _ = try await store.transition(.ids(["b"]), .pause, at: Self.start)
        try expectEqual(
          Set(try await store.transition(selection, .pauseAll, at: Self.time(1)).ids), ["a", "c"], "what was paused")
        try expect(try await store.known("a").isPausedTogether, "“a” does not count as paused together")
        try expectEqual(
          Set(try await store.transition(selection, .resumeTogether, at: Self.time(2)).ids), ["a", "c"],
          "what was resumed")
        try expectEqual(try await store.known("b").phase, .paused, "the phase of what was paused by itself")
        try expect(try await !store.known("a").isPausedTogether, "“a” counts as paused together still")
        try expectEqual(
          try await store.counts(tag: nil).filter { $0.value != 0 }, [.waiting: 2, .paused: 1], "the counts")
      }
    }
    await report.check("transition-leaves-held", "records that an owner holds are left alone") {
      let (ledger, store) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      _ = try await store.leased(["a"])
      _ = try await second.leased(["b"])
      let result = try await store.transition(.all, .cancel, at: Self.time(1))
      try expectEqual(result, LedgerTransitionResult(ids: ["c"], count: 1), "the result")
      try expectEqual(try await store.known("a").owner, store.owner, "the owner of what is held")
      try expectEqual(try await store.known("b").owner, second.owner, "the owner of what another holds")
    }
    await report.check("transition-selects", "a transition means the tag's or the named records, and no others") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2, tags: ["x", "y"]),
          try Self.addition("c", order: 3),
        ], at: Self.start)
      let tagged = try await store.transition(.tag("x"), .pause, at: Self.start)
      try expectEqual(Set(tagged.ids), ["a", "b"], "what bears the tag")
      let none = try await store.transition(.tag("z"), .pause, at: Self.start)
      try expectEqual(none, LedgerTransitionResult(ids: [], count: 0), "the result for a tag that nothing bears")
      let named = try await store.transition(
        .ids(["c", "c", "none"]), .pause, at: Self.start)
      try expectEqual(named, LedgerTransitionResult(ids: ["c"], count: 1), "the result for named records")
    }
    await report.check("transition-many", "a transition moves any number, and names at most 10,000 of them") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<10_050).map { try Self.addition(DownloadID("\($0)"), order: $0) }, at: Self.start)
      let result = try await store.transition(.all, .pause, at: Self.start)
      try expectEqual(result.count, 10_050, "how many were moved")
      try expectEqual(Set(result.ids).count, 10_000, "how many ids are named")
      try expectEqual(try await store.counts(tag: nil)[.paused] ?? 0, 10_050, "how many are paused")
    }
  }

  func checkRemoving(_ report: ConformanceReport) async {
    await report.check("remove-forgets", "remove forgets records in any phase, and returns what they were") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("a", to: .finished, Self.fill)
      _ = try await store.leased(["b"])
      var before: Set<DownloadRecord> = []
      for id: DownloadID in ["a", "b", "c"] { before.insert(try await store.known(id)) }
      let removed = try await store.remove(.all, limit: 100)
      try expectEqual(Set(removed), before, "what was removed")
      try expectEqual(try await store.record("a"), nil, "the record afterwards")
      try expectEqual(try await store.counts(tag: nil).values.reduce(0, +), 0, "how many are left")
      try expectEqual(try await store.leased().count, 0, "how many can be leased")
    }
    await report.check("remove-leaves-others", "remove leaves what another owner holds") {
      let (ledger, store) = try await filled(["a", "b"])
      let second = try await ledger.open()
      let held = try expectValue(try await second.leased(["a"]).first, "nothing was handed out")
      try expectEqual(try await store.remove(.all, limit: 100).map(\.id), ["b"], "what was removed")
      try expectEqual(try await store.remove(.ids(["a"]), limit: 100).map(\.id), [], "what was removed by its id")
      try expectEqual(try await store.known("a"), held, "the record that is held")
    }
    await report.check("remove-selects", "remove means the tag's or the named records, and no others") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2, tags: ["x", "y"]),
          try Self.addition("c", order: 3, tags: ["y"]), try Self.addition("d", order: 4),
        ], at: Self.start)
      try expectEqual(Set(try await store.remove(.tag("x"), limit: 9).map(\.id)), ["a", "b"], "what bore the tag")
      try expectEqual(try await store.counts(tag: "x").values.reduce(0, +), 0, "how many bear the tag")
      try expectEqual(try await store.counts(tag: "y").values.reduce(0, +), 1, "how many bear the other tag")
      try expectEqual(try await store.remove(.ids(["d", "d", "z"]), limit: 9).map(\.id), ["d"], "what was named")
    }
    await report.check("remove-is-limited", "remove forgets at most so many at a time, and goes on when asked again") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      try expectEqual(try await store.remove(.all, limit: 0).count, 0, "how many, with the limit 0")
      try expectEqual(try await store.remove(.all, limit: 2).count, 2, "how many, the first time")
      try expectEqual(try await store.remove(.all, limit: 2).count, 2, "how many, the second time")
      try expectEqual(try await store.remove(.all, limit: 2).count, 1, "how many, the third time")
      try expectEqual(try await store.remove(.all, limit: 2).count, 0, "how many, when none is left")
    }
  }

  func checkQueries(_ report: ConformanceReport) async {
    await report.check("query-orders", "records come by arrival, by rank or by their last change") {
      let (_, store) = try await opened()
      let ranks: [Int64] = [3, 1, 2, 0]
      try await store.rank(by: Ranking(name: "test") { Rank().ascending(ranks[Int($0.arrival)]) })
      _ = try await store.add(
        try ranks.indices.map { try Self.addition(DownloadID("\($0)"), order: Int64($0)) }, at: Self.start)
      try await store.bring("2", to: .failed, at: Self.time(1))
      try await store.bring("0", to: .waiting, at: Self.time(2)) { $0.notBefore = Self.time(50) }
      try await store.bring("3", to: .finished, at: Self.time(3))
      func ids(_ query: DownloadQuery) async throws -> [String] { try await store.records(query).map(\.id.rawValue) }
      try expectEqual(try await ids(DownloadQuery(order: .arrival)), ["0", "1", "2", "3"], "the order of arrival")
      try expectEqual(try await ids(DownloadQuery(order: .rank)), ["3", "1", "2", "0"], "the order of rank")
      try expectEqual(
        try await ids(DownloadQuery(order: .latestChange, limit: 3)), ["3", "0", "2"], "the order of the last change")
      try expectEqual(
        try await ids(DownloadQuery(phases: [.waiting], order: .rank)), ["1", "0"], "the waiting ones by rank")
    }
    await report.check("query-filters", "a query means the phases and the tag it names") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<6).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: $0 % 2 == 0 ? ["even"] : []) },
        at: Self.start)
      try await store.bring("0", to: .failed)
      try await store.bring("1", to: .failed)
      func ids(_ query: DownloadQuery) async throws -> [String] { try await store.records(query).map(\.id.rawValue) }
      try expectEqual(try await ids(DownloadQuery(tag: "even")), ["0", "2", "4"], "what bears the tag")
      try expectEqual(try await ids(DownloadQuery(phases: [.failed])), ["0", "1"], "what has failed")
      try expectEqual(try await ids(DownloadQuery(phases: [.failed], tag: "even")), ["0"], "what has both")
      try expectEqual(try await ids(DownloadQuery(phases: [])), [], "what is in none of the phases")
      try expectEqual(
        try await ids(DownloadQuery(phases: [.failed, .waiting], limit: 3)), ["0", "1", "2"], "two phases")
      try expectEqual(
        try await ids(DownloadQuery(tag: "even", order: .latestChange)).sorted(), ["0", "2", "4"], "the tag by change")
    }
    await report.check("query-ids", "many are looked up at once, those that are there") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("b", to: .failed)
      let records = try await store.records(of: ["c", "none", "b"]).sorted { $0.id.rawValue < $1.id.rawValue }
      try expectEqual(records.map(\.id), ["b", "c"], "the records")
      try expectEqual(records.map(\.phase), [.failed, .waiting], "their phases")
      try expectEqual(try await store.records(of: []).count, 0, "how many, of no ids")
    }
    await report.check("query-pages", "pages follow one another without gaps") {
      let ids = (0..<7).map { DownloadID("\($0)") }
      let (_, store) = try await filled(ids)
      var seen: [DownloadID] = []
      for offset in stride(from: 0, to: 9, by: 3) {
        seen += try await store.records(DownloadQuery(limit: 3, offset: offset)).map(\.id)
      }
      try expectEqual(seen, ids, "the pages together")
      try expectEqual(try await store.records(DownloadQuery(limit: 0)).count, 0, "how many, with the limit 0")
      try expectEqual(try await store.records(DownloadQuery(offset: 100)).count, 0, "how many, beyond the end")
    }
    await report.check("query-all", "a query without a limit means every one, from the offset on") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<1_500).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: ["t"]) }, at: Self.start)
      for query in [DownloadQuery(), DownloadQuery(tag: "t"), DownloadQuery(phases: [.waiting], order: .rank)] {
        var query = query
        try expectEqual(try await store.records(query).map(\.arrival), Array(0..<1_500), "what was found")
        query.offset = 1_400
        try expectEqual(
          try await store.records(query).map(\.arrival), Array(1_400..<1_500), "what was found after 1,400")
      }
    }
    await report.check("counts-are-right", "counts follow every change, for all and for a tag") {
      let (ledger, store) = try await opened()
      _ = try await store.add(
        try (0..<6).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: $0 < 4 ? ["t"] : []) },
        at: Self.start)
      try await store.bring("0", to: .failed)
      try await store.bring("1", to: .finished)
      try await store.bring("2", to: .processing)
      _ = try await store.leased(["4"])
      _ = try await store.transition(.ids(["5"]), .pause, at: Self.start)
      _ = try await store.remove(.ids(["1"]), limit: 1)
      func counts(_ tag: String?) async throws -> [DownloadState.Phase: Int] {
        try await store.counts(tag: tag).filter { $0.value != 0 }
      }
      try expectEqual(
        try await counts(nil), [.failed: 1, .processing: 1, .transferring: 1, .paused: 1, .waiting: 1], "the counts")
      try expectEqual(try await counts("t"), [.failed: 1, .processing: 1, .waiting: 1], "the counts of the tag")
      try expectEqual(try await counts("u"), [:], "the counts of a tag that nothing bears")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(
        try await second.counts(tag: nil).filter { $0.value != 0 }, [.failed: 1, .paused: 1, .waiting: 3],
        "the counts after the owner has closed")
    }
  }
}
