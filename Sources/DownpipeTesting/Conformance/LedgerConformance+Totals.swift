@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkTotals(_ report: ConformanceReport) async {
    await report.check("totals", "totals sum up the received and the expected bytes") {
      let (ledger, store) = try await opened()
      let sizes: [(id: DownloadID, expected: Int64?, tag: String)] = [
        ("finished", 10, "t"), ("partial", nil, "t"), ("waiting", 700, "u"), ("unknown", nil, "u"),
        ("cancelled", 50_000, "u"), ("unsized", nil, "u"), ("hinted", nil, "h"), ("misled", 60, "h"),
      ]
      _ = try await store.add(
        try sizes.enumerated().map { index, size in
          var addition = try Self.addition(size.id, order: Int64(index), tags: [size.tag])
          addition.request.expectedSize = ByteCount(size.expected)
          if size.tag == "h" { addition.request.sizeHint = 40 }
          return addition
        }, at: Self.start)
      try await store.bring("finished", to: .finished) { record in
        record.checkpoint.ranges = ByteRangeSet([0..<4])
        record.checkpoint.total = .known(4)
        record.steps.artifact = StoredArtifact(kind: .file, path: "f", name: "f", size: 30, mediaType: nil)
      }
      try await store.bring("unsized", to: .finished) { record in
        record.checkpoint.ranges = ByteRangeSet([0..<1])
        record.steps.artifact = StoredArtifact(kind: .file, path: "g", name: "g", size: nil, mediaType: nil)
      }
      try await store.bring("partial", to: .paused) { record in
        record.checkpoint.ranges = ByteRangeSet([0..<100, 200..<250])
        record.checkpoint.total = .known(5_000)
      }
      try await store.bring("cancelled", to: .cancelled)
      let expected = DownloadTotals(
        counts: [.finished: 2, .paused: 1, .waiting: 4, .cancelled: 1], received: 30 + 1 + 150,
        expected: 30 + 5_000 + 700 + 40 + 60, unknownSizes: 2)
      try expectEqual(try await store.totals(.all), expected, "the totals")
      try expectEqual(
        try await store.totals(.tag("t")),
        DownloadTotals(counts: [.finished: 1, .paused: 1], received: 180, expected: 5_030), "the totals of a tag")
      try expectEqual(try await store.totals(.tag("none")), DownloadTotals(), "the totals of an unused tag")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.totals(.all), expected, "the totals after a restart")
      _ = try await second.transition(.ids(["partial"]), .restart, at: Self.time(1))
      try expectEqual(
        try await second.totals(.tag("t")).received, 30, "the received bytes after one download was restarted")
    }
    await report.check("totals-are-bounded", "sums that overflow are the largest number") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<3).map { index in
          var addition = try Self.addition(DownloadID("\(index)"), order: Int64(index))
          addition.request.expectedSize = .known(.max)
          return addition
        }, at: Self.start)
      try expectEqual(try await store.totals(.all).expected, .max, "the expected bytes")
    }
    await report.check("unsettled-moves", "unsettledMoves returns finished downloads with a note") {
      let (ledger, store) = try await filled(["a", "b", "c", "d"])
      for id in ["a", "b"] as [DownloadID] { try await store.bring(id, to: .finished) }
      try await store.bring("c", to: .failed) { $0.steps.note = "a step's own" }
      try expectEqual(try await store.unsettledMoves().map(\.id), [], "the unsettled moves at first")
      _ = try await store.update("b", at: Self.time(1)) { $0.steps.note = "from x to y" }
      try expectEqual(try await store.unsettledMoves(), [try await store.known("b")], "the unsettled moves")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.unsettledMoves().map(\.id), ["b"], "the unsettled moves after a restart")
      _ = try await second.update("b", at: Self.time(2)) { $0.steps.note = nil }
      try expectEqual(try await second.unsettledMoves().map(\.id), [], "the unsettled moves after the move")
    }
  }

  func checkOthers(_ report: ConformanceReport) async {
    await report.check("changes-by-others", "changesByOthers reports changes by other stores and no others") {
      let (ledger, first) = try await filled(["a", "b", "c"])
      guard let changes = first.changesByOthers else { return }
      var iterator = changes.makeAsyncIterator()
      let second = try await ledger.open()
      _ = try await second.add([try Self.addition("d", order: 4)], at: Self.time(1))
      try await Self.expectNews(&iterator, "an addition")
      _ = try await second.update("d", at: Self.time(2)) { $0.request.priority = .high }
      try await Self.expectNews(&iterator, "an update")
      _ = try await second.update(.ids(["d"]), at: Self.time(2)) { $0.request.priority = .low }
      try await Self.expectNews(&iterator, "an update of selected downloads")
      _ = try await second.transition(.ids(["d"]), .pause, at: Self.time(3))
      try await Self.expectNews(&iterator, "a transition")
      try await second.bring("a", to: .finished)
      try await Self.expectNews(&iterator, "the end of a download")
      var held = try expectValue(try await second.leased(["b"]).first, "nothing was leased")
      held.phase = .failed
      _ = try await second.exchange([LedgerSave(held, .state)], leasing: nil, at: Self.time(4))
      try await Self.expectNews(&iterator, "an exchange")
      _ = try await second.remove(.ids(["d"]))
      try await Self.expectNews(&iterator, "a removal")
      _ = try await second.leased(["c"])
      try await second.close()
      try await Self.expectNews(&iterator, "a lease that was given back")
      // No other change is reported: the stream ends with the store.
      let third = try await ledger.open()
      try await third.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival) })
      _ = try await third.add([try Self.addition("c", order: 3)], at: Self.time(5))
      var record = try expectValue(try await third.leased(["c"]).first, "nothing was leased")
      record.checkpoint.name = "name"
      _ = try await third.save(record, .checkpoint, at: Self.time(5))
      try await third.renewLeases(until: Self.time(99))
      _ = try await first.add([try Self.addition("e", order: 5)], at: Self.time(6))
      _ = try await first.transition(.ids(["e"]), .pause, at: Self.time(6))
      try await first.close()
      try expect(
        await iterator.next(isolation: #isolation) == nil,
        "changesByOthers reported a lease, a checkpoint or a change by the store itself")
    }
  }

  private static func expectNews(_ iterator: inout AsyncStream<Void>.Iterator, _ what: String) async throws {
    try expect(await iterator.next(isolation: #isolation) != nil, "changesByOthers did not report \(what)")
  }
}
