@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkExchanges(_ report: ConformanceReport) async {
    await report.check("exchange", "an exchange saves first and then leases, including records that it has saved") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let held = try await store.leased(["a", "b", "c"])
      try expectEqual(held.count, 3, "the number of downloads leased")
      _ = try await store.remove(.ids(["b"]))
      let saves = held.map { record in
        var record = record
        record.apply(record.id == "c" ? .failedForNow : .bytesComplete)
        record.apply(.stepsComplete)
        record.bytesFetched = 7
        return LedgerSave(record, .state)
      }
      let exchange = try await store.exchange(
        saves, leasing: LeaseRequest(now: Self.time(1), until: Self.time(60)) { _ in .take }, at: Self.time(1))
      try expectEqual(
        exchange.saved, [true, false, true], "the results of the saves (the second record was removed before)")
      try expectEqual(exchange.leased.map(\.id), ["c", "d", "e"], "the downloads leased")
      try expectEqual(try await store.known("a").phase, .finished, "the phase of the finished download")
      try expectEqual(try await store.known("a").bytesFetched, 7, "the bytes fetched of the finished download")
      try expectEqual(try await store.record("b"), nil, "the record that was removed")
      try expectEqual(
        try await store.known("c"), exchange.leased.first, "the record of the download that was leased again")
      let empty = try await store.exchange([], leasing: nil, at: Self.time(1))
      try expectEqual(empty.saved.count + empty.leased.count, 0, "the number of results of an empty exchange")
    }
    await report.check(
      "exchange-again", "an exchange that is made again under its number changes nothing, and has its first answer"
    ) {
      let (ledger, store) = try await filled(["a", "b", "c", "d", "e"])
      let held = try await store.leased(["a", "b"])
      _ = try await store.remove(.ids(["b"]))
      let saves = held.map { record in
        var record = record
        record.apply(.bytesComplete)
        record.apply(.stepsComplete)
        return LedgerSave(record, .state)
      }
      let first = try await store.exchange(saves, leasing: Self.taking(["c", "d"]), at: Self.time(1), number: 7)
      // Other owners have exchanges, too, with the same numbers.
      let other = try await ledger.open()
      let others = try await other.exchange([], leasing: Self.taking(["e"]), at: Self.time(2), number: 7)
      try expectEqual(others.leased.map(\.id), ["e"], "the download that another owner has leased")
      _ = try await other.update("d", at: Self.time(2)) { $0.request.metadata = ["changed": "meanwhile"] }
      var answer = first
      for _ in 0..<2 {
        answer = try await store.exchange(saves, leasing: Self.taking(), at: Self.time(3), number: 7)
        try expectEqual(answer.saved, first.saved, "the results of the saves")
        try expectEqual(answer.leased.map(\.id), ["c", "d"], "the downloads leased")
        try expectEqual(answer.leased.map(\.generation), first.leased.map(\.generation), "their generations")
        try expectEqual(answer.leased.map(\.attempts), first.leased.map(\.attempts), "their attempts")
        try expectEqual(answer.leased.last?.request.metadata, ["changed": "meanwhile"], "what was changed meanwhile")
      }
      try expectEqual(try await store.known("a").updatedAt, Self.time(1), "the time at which “a” was changed")
      // What this owner does not hold any longer is not given again.
      var given = try expectValue(answer.leased.first, "nothing was leased")
      given.apply(.suspended)
      try expect(try await store.save(given, .state, at: Self.time(4)), "the leased record is not held")
      answer = try await store.exchange(saves, leasing: nil, at: Self.time(5), number: 7)
      try expectEqual(answer.leased.map(\.id), ["d"], "the downloads that are still held")
      // The next exchange has another number.
      answer = try await store.exchange([], leasing: Self.taking(), at: Self.time(6), number: 8)
      try expectEqual(answer.leased.map(\.id), ["c"], "the download that the next exchange has leased")
    }
    await report.check(
      "exchange-again-late", "an exchange that has not taken effect does so when it is made again under its number"
    ) {
      let (_, store) = try await filled(["a", "b"])
      let first = try await store.exchange([], leasing: Self.taking([]), at: Self.time(1), number: 1)
      try expectEqual(first.leased.map(\.id), [], "the downloads leased")
      let again = try await store.exchange([], leasing: Self.taking(["a"]), at: Self.time(2), number: 1)
      try expectEqual(again.leased.map(\.id), ["a"], "the downloads leased when it is made again")
      let third = try await store.exchange([], leasing: Self.taking(), at: Self.time(3), number: 1)
      try expectEqual(third.leased.map(\.id), ["a"], "the downloads leased when it is made for the third time")
    }
    await report.check(
      "exchange-again-changed",
      "what is leased by an exchange that is made again does not trust bytes of an earlier request"
    ) {
      let (_, store) = try await filled(["a"])
      var record = try expectValue(try await store.leased(["a"]).first, "nothing was leased")
      record.checkpoint = Checkpoint(ranges: ByteRangeSet([0..<100]), total: .known(100), isComplete: true)
      record.apply(.suspended)
      try expect(try await store.save(record, [.state, .checkpoint], at: Self.time(1)), "the record is not held")
      let first = try await store.exchange([], leasing: Self.taking(["a"]), at: Self.time(2), number: 1)
      try expectEqual(first.leased.map(\.checkpoint.isComplete), [true], "whether the bytes are complete")
      _ = try await store.update("a", at: Self.time(3)) { $0.request.url = URL(string: "https://example.org/other")! }
      let again = try await store.exchange([], leasing: Self.taking(), at: Self.time(4), number: 1)
      try expectEqual(
        again.leased.map(\.checkpoint.isComplete), [false], "whether the bytes are complete, after the change")
    }
    await report.check("exchange-again-reopened", "the answer that is given again says what waits again") {
      let (_, store) = try await filled(["a", "b"])
      var record = try expectValue(try await store.leased(["a"]).first, "nothing was leased")
      _ = try await store.update("a", at: Self.time(1)) { $0.request.url = URL(string: "https://example.org/other")! }
      record.apply(.bytesComplete)
      record.apply(.stepsComplete)
      let saves = [LedgerSave(record, .state)]
      let first = try await store.exchange(saves, leasing: nil, at: Self.time(2), number: 1)
      try expectEqual(first.reopened, ["a"], "the downloads that wait again")
      let again = try await store.exchange(saves, leasing: Self.taking(), at: Self.time(3), number: 1)
      try expectEqual(again.reopened, first.reopened, "the downloads that wait again")
      try expectEqual(again.mayHaveReleasedDelayed, first.mayHaveReleasedDelayed, "whether a due time was released")
      try expectEqual(again.leased.map(\.id), [], "the downloads leased")
    }
  }

  /// A lease of some downloads, or of all.
  private static func taking(_ ids: [DownloadID]? = nil) -> LeaseRequest {
    LeaseRequest(now: time(10), until: time(60)) { candidate in
      ids?.contains(DownloadID(candidate.intent.rawValue)) ?? true ? .take : .skip
    }
  }
}
