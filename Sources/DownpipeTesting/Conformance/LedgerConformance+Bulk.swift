@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  func checkTransitions(_ report: ConformanceReport) async {
    await report.check(
      "transition-moves", "transition applies an event to all records for which it is defined, atomically"
    ) {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      try await store.bring("b", to: .waiting, Self.fill)
      try await store.bring("c", to: .finished)
      try await store.bring("d", to: .paused)
      try await store.bring("e", to: .failed)
      let result = try await store.transition(.all, .pause, at: Self.time(4))
      try expectEqual(result.count, 2, "the number of records moved")
      try expectEqual(Set(result.ids), ["a", "b"], "the records moved")
      try expectEqual(try await store.known("a").phase, .paused, "the phase of a waiting download")
      try expectEqual(try await store.known("b").updatedAt, Self.time(4), "the time of the change")
      try expectEqual(try await store.known("b").notBefore, nil, "the due time of a moved record")
      try expectEqual(try await store.known("b").checkpoint, Self.fullCheckpoint, "the checkpoint of a moved record")
      try expectEqual(
        try await store.known("c").phase, .finished, "the phase of a record that the event does not apply to")
      try expectEqual(try await store.counts(.all)[.paused] ?? 0, 3, "the count of the phase")
    }
    await report.check("transition-to-waiting", "a resumed download is due immediately and has no error") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("a", to: .failed, Self.fill)
      try await store.bring("b", to: .paused, Self.fill)
      try await store.bring("c", to: .waiting, Self.fill)
      let result = try await store.transition(.all, .resume, at: Self.time(1))
      try expectEqual(result.count, 3, "the number of records moved")
      for id: DownloadID in ["a", "b", "c"] {
        let record = try await store.known(id)
        try expectEqual(record.phase, .waiting, "the phase of “\(id)”")
        try expectEqual(record.error, nil, "the error of “\(id)”")
        try expectEqual(record.notBefore, nil, "the due time of “\(id)”")
        try expectEqual(record.consecutiveFailures, 0, "the failures in a row of “\(id)”")
      }
      try expectEqual(
        try await store.known("a").checkpoint, Self.fullCheckpoint, "the checkpoint of the failed download")
      try expectEqual(
        try await store.known("b").checkpoint, Self.fullCheckpoint, "the checkpoint of the paused download")
      try expectEqual(try await store.leased(at: Self.time(1)).count, 3, "the number of downloads that can be leased")
    }
    await report.check("restart-forgets", "a restarted download starts again from the beginning, from every phase") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let phases: [(DownloadID, DownloadState.Phase)] = [
        ("a", .waiting), ("b", .paused), ("c", .failed), ("d", .cancelled), ("e", .finished),
      ]
      for (id, phase) in phases { try await store.bring(id, to: phase, Self.fill) }
      let finished = try await store.known("e")
      var (earlier, placed) = ([DownloadID: StoredArtifact?](), [DownloadID: StoredArtifact?]())
      var before: [DownloadID: DownloadRecord] = [:]
      for (id, phase) in phases {
        let record = try await store.known(id)
        earlier[id] = record.earlierArtifact
        before[id] = record
        if phase != .finished { placed[id] = record.steps.artifact }
      }
      earlier["e"] = finished.steps.artifact
      let result = try await store.transition(.all, .restart, at: Self.time(1))
      try expectEqual(Set(result.ids), ["a", "b", "c", "d", "e"], "the records restarted")
      for id in result.ids {
        var expected = DownloadRecord(
          request: try Self.request(id), generation: try await store.known(id).generation,
          arrival: try await store.known(id).arrival, rank: try await store.known(id).rank, createdAt: Self.start)
        expected.wasInterrupted = id == "e" ? finished.wasInterrupted : true
        // The file stays until another one takes its place.
        expected.earlierArtifact = earlier[id] ?? nil
        expected.leftArtifacts = [placed[id] ?? nil].compactMap { $0 }
        // What is known of the file is not forgotten, and the user wants what the server has now.
        expected.checkpoint = before[id]?.checkpoint.facts ?? Checkpoint()
        expected.versions = VersionLog(hasOther: before[id]?.versions.hasOther ?? false, mayChange: true)
        expected.updatedAt = Self.time(1)
        try expectEqual(try await store.known(id), expected, "the record of “\(id)”")
      }
    }
    await report.check(
      "placed-file", "a file that a step has put in its place is what the restarted or cancelled download replaces"
    ) {
      let phases: [(DownloadID, DownloadState.Phase)] = [("a", .waiting), ("b", .paused), ("c", .failed)]
      for selection in [LedgerSelection.all, .ids(["a", "b", "c"])] {
        for (event, hasEarlier) in [
          (Lifecycle.Event.restart, false), (.restart, true), (.cancel, false), (.cancel, true),
        ] {
          let (_, store) = try await filled(["a", "b", "c"])
          for (id, phase) in phases {
            try await store.bring(id, to: phase) { record in
              Self.fill(&record)
              if !hasEarlier { record.earlierArtifact = nil }
              if hasEarlier, id == "c" {
                record.leftArtifacts = [
                  StoredArtifact(kind: .file, path: "a/left", name: "left", size: 1, mediaType: nil)
                ]
              }
              // Without a time, the artifact is not in its place.
              if id == "b" { record.steps.artifact?.modifiedAt = nil }
            }
          }
          let before = try await store.records(of: ["a", "b", "c"])
          try expectEqual(before.map(\.leftArtifacts.count).reduce(0, +), hasEarlier ? 1 : 0, "the files left before")
          let result = try await store.transition(selection, event, at: Self.time(1))
          try expectEqual(result.count, 3, "the number of records changed")
          for record in before {
            let after = try await store.known(record.id)
            let expected = hasEarlier ? record.earlierArtifact : record.id == "b" ? nil : record.steps.artifact
            try expectEqual(after.earlierArtifact, expected, "the artifact that “\(record.id)” replaces")
            let placed = hasEarlier && record.id != "b" ? [record.steps.artifact].compactMap { $0 } : []
            try expectEqual(
              after.leftArtifacts, record.leftArtifacts + placed,
              "the files that “\(record.id)” has left in other places")
            try expectEqual(after.steps, StepLog(), "the steps of “\(record.id)”")
          }
        }
      }
    }
    await report.check("paused-together", "resumeTogether applies exactly to the downloads that were paused together") {
      for selection in [LedgerSelection.all, .matching(.tag("t")), .ids(["a", "b", "c"])] {
        let (_, store) = try await opened()
        _ = try await store.add(
          try ["a", "b", "c"].enumerated().map {
            try Self.addition(DownloadID($1), order: Int64($0), tags: ["t"])
          }, at: Self.start)
        _ = try await store.transition(.ids(["b"]), .pause, at: Self.start)
        try expectEqual(
          Set(try await store.transition(selection, .pauseAll, at: Self.time(1)).ids), ["a", "c"],
          "the downloads paused")
        try expect(try await store.known("a").isPausedTogether, "“a” is not marked as paused together")
        try expectEqual(
          Set(try await store.transition(selection, .resumeTogether, at: Self.time(2)).ids), ["a", "c"],
          "the downloads resumed")
        try expectEqual(
          try await store.known("b").phase, .paused, "the phase of the download that was paused separately")
        try expect(try await !store.known("a").isPausedTogether, "“a” is still marked as paused together")
        try expectEqual(
          try await store.counts(.all).filter { $0.value != 0 }, [.waiting: 2, .paused: 1], "the counts")
      }
    }
    await report.check("transition-leaves-held", "records with an owner are not changed") {
      let (ledger, store) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      _ = try await store.leased(["a"])
      _ = try await second.leased(["b"])
      let result = try await store.transition(.all, .cancel, at: Self.time(1))
      try expectEqual(result, LedgerBulkResult(ids: ["c"], count: 1), "the result")
      try expectEqual(try await store.known("a").owner, store.owner, "the owner of a record of this owner")
      try expectEqual(try await store.known("b").owner, second.owner, "the owner of a record of another owner")
    }
    await report.check("transition-selects", "a transition applies to exactly the records with the tag or the ids") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2, tags: ["x", "y"]),
          try Self.addition("c", order: 3),
        ], at: Self.start)
      let tagged = try await store.transition(.matching(.tag("x")), .pause, at: Self.start)
      try expectEqual(Set(tagged.ids), ["a", "b"], "the downloads with the tag")
      let none = try await store.transition(.matching(.tag("z")), .pause, at: Self.start)
      try expectEqual(none, LedgerBulkResult(ids: [], count: 0), "the result for an unused tag")
      let named = try await store.transition(
        .ids(["c", "c", "none"]), .pause, at: Self.start)
      try expectEqual(named, LedgerBulkResult(ids: ["c"], count: 1), "the result for ids")
    }
    await report.check("transition-many", "a transition moves any number of records and returns at most 10,000 ids") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<10_050).map { try Self.addition(DownloadID("\($0)"), order: $0) }, at: Self.start)
      let result = try await store.transition(.all, .pause, at: Self.start)
      try expectEqual(result.count, 10_050, "the number of records moved")
      try expectEqual(Set(result.ids).count, 10_000, "the number of ids returned")
      try expectEqual(try await store.counts(.all)[.paused] ?? 0, 10_050, "the number of paused downloads")
    }
  }

  func checkRemoving(_ report: ConformanceReport) async {
    await report.check("remove-forgets", "remove deletes records in every phase and returns them") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("a", to: .finished, Self.fill)
      _ = try await store.leased(["b"])
      var before: Set<DownloadRecord> = []
      for id: DownloadID in ["a", "b", "c"] { before.insert(try await store.known(id)) }
      let removed = try await store.remove(.all)
      try expectEqual(Set(removed), before, "the records removed")
      try expectEqual(try await store.record("a"), nil, "the record after its removal")
      try expectEqual(try await store.counts(.all).values.reduce(0, +), 0, "the number of records left")
      try expectEqual(try await store.leased().count, 0, "the number of downloads that can be leased")
    }
    await report.check("remove-leaves-others", "remove keeps records of other owners") {
      let (ledger, store) = try await filled(["a", "b"])
      let second = try await ledger.open()
      let held = try expectValue(try await second.leased(["a"]).first, "nothing was leased")
      try expectEqual(try await store.remove(.all).map(\.id), ["b"], "the records removed")
      try expectEqual(try await store.remove(.ids(["a"])).map(\.id), [], "the records removed by id")
      try expectEqual(try await store.known("a"), held, "the record of the other owner")
    }
    await report.check("remove-selects", "remove deletes exactly the records with the tag or the ids") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2, tags: ["x", "y"]),
          try Self.addition("c", order: 3, tags: ["y"]), try Self.addition("d", order: 4),
        ], at: Self.start)
      try expectEqual(
        Set(try await store.remove(.matching(.tag("x"))).map(\.id)), ["a", "b"], "the records removed by tag")
      try expectEqual(try await store.counts(.tag("x")).values.reduce(0, +), 0, "the number of downloads with the tag")
      try expectEqual(
        try await store.counts(.tag("y")).values.reduce(0, +), 1, "the number of downloads with the other tag")
      try expectEqual(
        try await store.remove(.ids(["d", "d", "z"])).map(\.id), ["d"], "the records removed by id")
    }
    await report.check("remove-chooses", "remove deletes exactly the records for which the closure returns true") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let asked = Mutex<[DownloadID]>([])
      let count = try await store.remove(.all) { record in
        asked.withLock { $0.append(record.id) }
        return record.id != "b" && record.id != "d"
      }
      try expectEqual(count, 3, "the number of records removed")
      try expectEqual(asked.withLock { $0 }.sorted(), ["a", "b", "c", "d", "e"], "the records that could be chosen")
      try expectEqual(try await store.records(DownloadQuery()).map(\.id), ["b", "d"], "the records left")
      try expectEqual(try await store.counts(.all)[.waiting] ?? 0, 2, "the number of records left")
    }
    await report.check(
      "remove-leaves", "what removed records leave on disk is kept for its location until it is forgotten"
    ) {
      let odd: DownloadID = "\u{301}c\0d"
      let (ledger, store) = try await filled(["größer 🚀", "b", odd])
      let result = try await store.remove(
        .all, number: nil,
        leaving: { record in
          // Nothing.
          if record.id == "b" { return LedgerDeletion(id: "b") }
          var file = StoredArtifact(
            kind: .file, path: "日本/\(record.id)", name: "", size: nil, mediaType: "x/y",
            modifiedAt: Date(timeIntervalSince1970: 1.0 / 3))
          file.companions = [.init(suffix: ".small.png", size: 3)]
          return LedgerDeletion(record, record.id == odd ? [] : [file], at: "here")
        })
      try expectEqual(result.count, 3, "the number of records removed")
      let numbers = try expectValue(result.deletions, "nothing is kept")
      let second = try await ledger.open()
      let found = try await second.deletions(at: "here", in: numbers, limit: 10)
      try expectEqual(found.map(\.id), ["größer 🚀", odd], "what is kept")
      try expectEqual(found.map(\.partials), [[false], [false]], "the partials")
      try expectEqual(found[0].artifacts.map(\.path), ["日本/größer 🚀"], "the files")
      try expectEqual(found[0].artifacts[0].companions.map(\.size), [3], "the companions")
      try expectEqual(Set(found.map(\.generation)).count, 2, "the generations")
      try expectEqual(try await second.deletions(at: "here", in: numbers, limit: 1), [found[0]], "the first page")
      try expectEqual(try await second.deletions(at: nil, in: numbers, limit: 10), [], "what is kept for no location")
      try await second.forget(deletions: [found[0].number, found[0].number])
      try expectEqual(try await store.deletions(at: "here", in: .min ... .max, limit: 10), [found[1]], "the rest")
    }
  }

  func checkQueries(_ report: ConformanceReport) async {
    await report.check("query-orders", "a query orders records by arrival, by rank or by their last change") {
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
        try await ids(DownloadQuery(phases: [.waiting], order: .rank)), ["1", "0"], "the waiting downloads by rank")
    }
    await report.check("query-filters", "a query selects by phase and by tag") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<6).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: $0 % 2 == 0 ? ["even"] : []) },
        at: Self.start)
      try await store.bring("0", to: .failed)
      try await store.bring("1", to: .failed)
      func ids(_ query: DownloadQuery) async throws -> [String] { try await store.records(query).map(\.id.rawValue) }
      try expectEqual(try await ids(DownloadQuery(tag: "even")), ["0", "2", "4"], "the downloads with the tag")
      try expectEqual(try await ids(DownloadQuery(phases: [.failed])), ["0", "1"], "the failed downloads")
      try expectEqual(
        try await ids(DownloadQuery(phases: [.failed], tag: "even")), ["0"], "the failed downloads with the tag")
      try expectEqual(try await ids(DownloadQuery(phases: [])), [], "the downloads of a query without phases")
      try expectEqual(
        try await ids(DownloadQuery(phases: [.failed, .waiting], limit: 3)), ["0", "1", "2"], "two phases")
      try expectEqual(
        try await ids(DownloadQuery(tag: "even", order: .latestChange)).sorted(), ["0", "2", "4"],
        "the downloads with the tag, by change,")
    }
    await report.check("query-ids", "a lookup of several ids returns the records that exist") {
      let (_, store) = try await filled(["a", "b", "c"])
      try await store.bring("b", to: .failed)
      let records = try await store.records(of: ["c", "none", "b"]).sorted { $0.id.rawValue < $1.id.rawValue }
      try expectEqual(records.map(\.id), ["b", "c"], "the records")
      try expectEqual(records.map(\.phase), [.failed, .waiting], "their phases")
      try expectEqual(try await store.records(of: []).count, 0, "the number of records of no ids")
    }
    await report.check("query-pages", "pages have no gaps and no duplicates") {
      let ids = (0..<7).map { DownloadID("\($0)") }
      let (_, store) = try await filled(ids)
      var seen: [DownloadID] = []
      for offset in stride(from: 0, to: 9, by: 3) {
        seen += try await store.records(DownloadQuery(limit: 3, offset: offset)).map(\.id)
      }
      try expectEqual(seen, ids, "the pages together")
      try expectEqual(try await store.records(DownloadQuery(limit: 0)).count, 0, "the number with the limit 0")
      try expectEqual(try await store.records(DownloadQuery(offset: 100)).count, 0, "the number after the end")
    }
    await report.check("query-all", "a query without a limit returns all records from the offset on") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<1_500).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: ["t"]) }, at: Self.start)
      for query in [DownloadQuery(), DownloadQuery(tag: "t"), DownloadQuery(phases: [.waiting], order: .rank)] {
        var query = query
        try expectEqual(try await store.records(query).map(\.arrival), Array(0..<1_500), "the records found")
        query.offset = 1_400
        try expectEqual(
          try await store.records(query).map(\.arrival), Array(1_400..<1_500), "the records found after 1,400")
      }
    }
    await report.check("counts-are-right", "counts are correct after every change, in total and for a tag") {
      let (ledger, store) = try await opened()
      _ = try await store.add(
        try (0..<6).map { try Self.addition(DownloadID("\($0)"), order: $0, tags: $0 < 4 ? ["t"] : []) },
        at: Self.start)
      try await store.bring("0", to: .failed)
      try await store.bring("1", to: .finished)
      try await store.bring("2", to: .processing)
      _ = try await store.leased(["4"])
      _ = try await store.transition(.ids(["5"]), .pause, at: Self.start)
      _ = try await store.remove(.ids(["1"]))
      func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
        try await store.counts(filter).filter { $0.value != 0 }
      }
      try expectEqual(
        try await counts(.all), [.failed: 1, .processing: 1, .transferring: 1, .paused: 1, .waiting: 1], "the counts")
      try expectEqual(try await counts(.tag("t")), [.failed: 1, .processing: 1, .waiting: 1], "the counts of the tag")
      try expectEqual(try await counts(.tag("u")), [:], "the counts of an unused tag")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(
        try await second.counts(.all).filter { $0.value != 0 }, [.failed: 1, .paused: 1, .waiting: 3],
        "the counts after the owner has closed")
    }
  }
}
