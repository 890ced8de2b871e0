@_spi(Ledger) import DownpipeCore
import Foundation

// Whole records of another ledger, and reading them in the order of their generations.
extension LedgerConformance {
  /// A record with all fields set, as another ledger has kept it.
  private static func record(
    _ id: DownloadID, _ generation: Int64, _ phase: DownloadState.Phase = .waiting, arrival: Int64 = 7,
    after: Set<DownloadID> = []
  ) throws -> DownloadRecord {
    var request = try fullRequest(id)
    (request.intent, request.after) = (Intent(id.rawValue), after)
    var record = DownloadRecord(
      request: request, generation: generation, arrival: arrival, rank: Rank(), location: "/elsewhere",
      createdAt: time(-1_000.5))
    record.updatedAt = time(-500.25)
    fill(&record)
    record.added = try fullRequest(id).with(\.url, URL(filePath: "/added"))
    record.attempts = 5
    record.waitsFor = after
    record.phase = phase
    if phase == .waiting { (record.notBefore, record.isPausedTogether) = (nil, false) }
    return record
  }

  private static func simple(
    _ id: DownloadID, _ generation: Int64, _ phase: DownloadState.Phase = .waiting, after: Set<DownloadID> = []
  ) throws -> DownloadRecord {
    var record = DownloadRecord(
      request: try request(id), generation: generation, arrival: generation, rank: Rank(), createdAt: start)
    record.request.after = after
    record.waitsFor = after
    record.phase = phase
    return record
  }

  func checkRestoring(_ report: ConformanceReport) async {
    await report.check("restore-is-whole", "a record that is put keeps everything, also after a restart") {
      let (ledger, store) = try await opened()
      try await store.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival) })
      let phases: [DownloadState.Phase] = [.waiting, .paused, .finished, .failed, .cancelled]
      let records = try phases.enumerated().map { index, phase in
        try Self.record(DownloadID(phase.rawValue), Int64(10 + index * 3), phase, arrival: .max, after: ["other"])
      }
      try expectEqual(
        try await store.restore(records, at: Self.start), phases.map { _ in true }, "whether they were put")
      func check(_ store: any LedgerStore, _ when: String) async throws {
        for record in records {
          var expected = record
          expected.rank = Rank().ascending(.max)
          try expectEqual(try await store.known(record.id), expected, "the \(record.id) record\(when)")
        }
        try expectEqual(
          try await store.counts(.all), Dictionary(uniqueKeysWithValues: phases.map { ($0, 1) }), "the counts\(when)")
        try expectEqual(try await store.records(DownloadQuery(tag: "plain")).count, 5, "the records by tag\(when)")
      }
      try await check(store, "")
      try await store.close()
      try await check(try await ledger.open(), " after a restart")
    }
    await report.check("restore-leaves-known", "a record whose id is known is left alone") {
      let (_, store) = try await filled(["a"])
      let before = try await store.known("a")
      let records = [
        try Self.record("a", 50, .finished), try Self.record("b", 51, .failed), try Self.record("b", 52, .paused),
      ]
      try expectEqual(try await store.restore(records, at: Self.start), [false, true, false], "whether they were put")
      try expectEqual(try await store.known("a"), before, "the known record")
      let put = try await store.known("b")
      try expectEqual(put.phase, .failed, "the phase of the first of two records with one id")
      try expectEqual(try await store.restore(records, at: Self.time(9)), [false, false, false], "a second time")
      try expectEqual(try await store.known("b"), put, "the record after the second time")
      try expectEqual(try await store.counts(.all), [.waiting: 1, .failed: 1], "the counts")
      try expectEqual(try await store.restore([], at: Self.start), [], "without records")
    }
    await report.check("restore-keeps-order", "records that are put wait in the order that they had") {
      let (_, first) = try await opened()
      let (_, second) = try await opened()
      // Equal arrivals: the order of the generations decides.
      let additions = try [("d", 5), ("b", 3), ("c", 5), ("a", 9), ("e", 1)].map { id, order in
        try Self.addition(DownloadID(id), order: Int64(order))
      }
      _ = try await first.add(additions, at: Self.start)
      _ = try await first.remove(.ids(["b"]))
      let records = try await first.records(after: 0, limit: 10)
      try expectEqual(records.map(\.id), ["d", "c", "a", "e"], "the records in the order of their generations")
      for part in [records.prefix(2), records.dropFirst(2)] {
        _ = try await second.restore(Array(part), at: Self.start)
      }
      try expectEqual(try await second.leased().map(\.id), ["e", "d", "c", "a"], "the order of the leases")
      try expectEqual(try await first.leased().map(\.id), ["e", "d", "c", "a"], "the order in the first ledger")
    }
    await report.check("restore-generations", "a record keeps its generation unless the ledger has given it") {
      let (_, store) = try await filled(["a", "b"])
      let last = try await store.known("b").generation
      _ = try await store.remove(.ids(["b"]))
      let unfinished = try Self.record("unfinished", last, .failed)
      let finished = try Self.record("finished", last - 1, .finished)
      var asking = try Self.record("asking", last - 1)
      asking.refreshing = .asking
      let kept = try Self.record("kept", last + 100)
      _ = try await store.restore([unfinished, finished, asking, kept], at: Self.start)
      var generations: [Int64] = []
      for id in ["unfinished", "finished", "asking", "kept"] as [DownloadID] {
        generations.append(try await store.known(id).generation)
      }
      try expectEqual(generations, [last + 1, last + 2, last + 3, last + 100], "the generations")
      let begun = try await store.known("unfinished")
      try expectEqual(begun.checkpoint, Checkpoint(), "the checkpoint of a record without its partial")
      try expectEqual(begun.steps, StepLog(), "the steps of a record without its partial")
      try expectEqual(begun.earlierArtifact, unfinished.earlierArtifact, "the published artifact of this record")
      for record in [finished, asking, kept] {
        try expectEqual(
          try await store.known(record.id).checkpoint, record.checkpoint, "the checkpoint of “\(record.id)”")
        try expectEqual(try await store.known(record.id).steps, record.steps, "the steps of “\(record.id)”")
      }
      let later = try await store.add([try Self.addition("later", order: 9)], at: Self.start)
      try expect((later.first?.record.generation ?? 0) > last + 100, "a later generation is not larger")
    }
    await report.check("restore-active", "an active record is put as after the loss of its lease") {
      let (_, store) = try await opened()
      var active = try Self.record("a", 3, .transferring)
      active.owner = "another"
      active.wasInterrupted = false
      _ = try await store.restore([active], at: Self.start)
      active.apply(.leaseLost)
      active.rank = try await store.known("a").rank
      try expectEqual(try await store.known("a"), active, "the record")
      try expectEqual(try await store.counts(.all), [.waiting: 1], "the counts")
      try expectEqual(try await store.leased(scope: .own).map(\.id), ["a"], "the downloads leased")
    }
    await report.check("restore-due", "a record that is put waits for its time") {
      let (_, store) = try await opened()
      var delayed = try Self.simple("a", 3)
      delayed.notBefore = Self.time(30)
      _ = try await store.restore([delayed], at: Self.start)
      try expectEqual(try await store.leased().count, 0, "the number leased before")
      try expectEqual(try await store.nextDue(after: Self.start), Self.time(30), "the next due time")
      try expectEqual(try await store.leased(at: Self.time(31)).map(\.id), ["a"], "the downloads leased then")
    }
    await checkRestoringDependencies(report)
    await report.check("restore-is-told", "records that are put are told to other stores") {
      let (ledger, store) = try await opened()
      let other = try await ledger.open()
      guard var changes = other.changesByOthers?.makeAsyncIterator() else { return }
      _ = try await store.restore([try Self.simple("a", 1)], at: Self.start)
      try expect(await changes.next() != nil, "the stream has ended")
    }
    await report.check("generations-in-pages", "records are read in the order of their generations, page by page") {
      let (_, store) = try await opened()
      let additions = try (3...9).reversed().map { try Self.addition("\($0)", order: Int64($0)) }
      _ = try await store.add(additions, at: Self.start)
      try await store.bring("8", to: .finished)
      _ = try await store.leased(["5"])
      _ = try await store.remove(.ids(["7"]))
      var ids: [DownloadID] = []
      var last = Int64.min
      while true {
        let page = try await store.records(after: last, limit: 3)
        ids += page.map(\.id)
        guard page.count == 3, let end = page.last?.generation else { break }
        last = end
      }
      try expectEqual(ids, ["9", "8", "6", "5", "4", "3"], "the records")
      try expectEqual(try await store.records(after: .max, limit: 3).count, 0, "the number after the last one")
      try expectEqual(try await store.records(after: 0, limit: 0).count, 0, "the number on a page without room")
    }
  }

  private func checkRestoringDependencies(_ report: ConformanceReport) async {
    await report.check("restore-dependencies", "records that are put wait for those that have not finished here") {
      let (_, store) = try await filled(["done", "open"])
      try await store.bring("done", to: .finished)
      // A dependency that was met in the other ledger stays met.
      var met = try Self.simple("met", 20, after: ["open"])
      met.waitsFor = []
      let records = [
        try Self.simple("a", 10, after: ["done"]), try Self.simple("b", 11, after: ["open", "done", "unknown"]),
        try Self.simple("c", 12, after: ["d"]), try Self.simple("d", 13, .finished), met,
      ]
      try expectEqual(
        try await store.restore(records, at: Self.start), records.map { _ in true }, "whether they were put")
      for (id, expected) in [("a", []), ("b", ["open", "unknown"]), ("c", []), ("met", [])]
        as [(DownloadID, Set<DownloadID>)]
      {
        try expectEqual(try await store.known(id).waitsFor, expected, "what “\(id)” waits for")
      }
      try await store.bring("open", to: .finished)
      try expectEqual(try await store.known("b").waitsFor, ["unknown"], "what “b” waits for when one has finished")
      _ = try await store.restore([try Self.simple("unknown", 30, .finished)], at: Self.time(4))
      try expectEqual(try await store.known("b").waitsFor, [], "what “b” waits for when a finished record was put")
      try expectEqual(try await store.known("b").updatedAt, Self.time(4), "the time of this change")
      try expectEqual(
        Set(try await store.leased().map(\.id)), ["a", "b", "c", "met"], "the downloads leased")
    }
    await report.check("restore-refuses-cycles", "records that would wait for each other are refused") {
      let (_, store) = try await opened()
      let waiting = [try Self.simple("a", 1, after: ["b"]), try Self.simple("d", 2, after: ["done"])]
      _ = try await store.restore(waiting, at: Self.start)
      let records = [
        try Self.simple("done", 5, .finished), try Self.simple("b", 6, after: ["c"]),
        try Self.simple("c", 7, after: ["a"]),
      ]
      try await expectError(.invalidRequest, when: "putting records in a cycle") {
        _ = try await store.restore(records, at: Self.start)
      }
      try expectEqual(try await store.counts(.all), [.waiting: 2], "the counts")
      try expectEqual(try await store.known("d").waitsFor, ["done"], "what another download waits for")
      _ = try await store.restore(Array(records.prefix(2)), at: Self.start)
      try expectEqual(try await store.counts(.all), [.waiting: 3, .finished: 1], "the counts without the last of them")
    }
  }
}
