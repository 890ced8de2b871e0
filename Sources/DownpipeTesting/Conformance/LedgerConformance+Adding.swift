@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkOpening(_ report: ConformanceReport) async {
    await report.check("owner-is-unique", "the owner is unique to each opening") {
      let (ledger, first) = try await opened()
      let second = try await ledger.open()
      try expect(!first.owner.isEmpty, "the owner is empty")
      try expect(first.owner != second.owner, "two openings have the owner “\(first.owner)”")
    }
    await report.check("openings-share", "every opening sees what another has written") {
      let (ledger, first) = try await opened()
      let second = try await ledger.open()
      _ = try await first.add([try Self.addition("a", order: 1)], at: Self.start)
      _ = try await second.known("a")
      _ = try await second.add([try Self.addition("b", order: 2)], at: Self.start)
      _ = try await first.known("b")
      try await first.close()
      _ = try await second.known("a")
    }
    await report.check("close-gives-back", "close gives back the records of this owner and no others") {
      let (ledger, first) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      _ = try await first.leased(["a"])
      _ = try await second.leased(["b"])
      try await first.close()
      try expectEqual(try await second.known("a").phase, .waiting, "the phase of a record of the closed owner")
      try expectEqual(try await second.known("a").owner, nil, "the owner of a record of the closed owner")
      try expect(
        try await second.known("a").wasInterrupted, "a record of the closed owner is not marked as interrupted")
      try expectEqual(try await second.known("b").owner, second.owner, "the owner of a record of another opening")
      let third = try await ledger.open()
      try expectEqual(try await third.leased().map(\.id), ["a", "c"], "what can be leased afterwards")
    }
  }

  func checkAdding(_ report: ConformanceReport) async {
    await report.check("new-waits", "a new download is waiting and has no owner and no history") {
      let (_, store) = try await opened()
      let addition = try Self.addition("a", order: 7)
      let outcome = try expectValue(
        try await store.add([addition], at: Self.start).first, "adding one download gave no outcome")
      var expected = DownloadRecord(
        request: addition.request, generation: outcome.record.generation, arrival: 7,
        rank: Rank().ascending(7), createdAt: Self.start)
      expected.updatedAt = Self.start
      try expect(outcome.isNew, "isNew is false")
      try expectEqual(outcome.record, expected, "the outcome's record")
      try expectEqual(try await store.known("a"), expected, "the record in the ledger")
      try expectEqual(try await store.record("b"), nil, "the record of an unknown id")
    }
    await report.check("added-paused", "a new download can be paused from the start; a known one keeps its phase") {
      let (_, store) = try await filled(["a"])
      var additions = [try Self.addition("a", order: 1), try Self.addition("b", order: 2, tags: ["t"])]
      for index in additions.indices { additions[index].isPaused = true }
      let outcomes = try await store.add(additions, at: Self.time(1))
      try expectEqual(outcomes.map(\.record.phase), [.waiting, .paused], "the phases of the outcomes")
      try expectEqual(try await store.known("b"), outcomes[1].record, "the record in the ledger")
      try expectEqual(try await store.counts(.all), [.waiting: 1, .paused: 1], "the numbers of downloads")
      try expectEqual(try await store.counts(.tag("t")), [.paused: 1], "the numbers of downloads with the tag")
      try expectEqual(try await store.leased().map(\.id), ["a"], "what can be leased")
      _ = try await store.transition(.ids(["b"]), .resume, at: Self.time(2))
      try expectEqual(try await store.leased().map(\.id), ["b"], "what can be leased after it was resumed")
    }
    await report.check("add-keeps-order", "the order of the result is that of the additions; an id may come twice") {
      let (_, store) = try await opened()
      var again = try Self.addition("b", order: 4)
      again.request.priority = .high
      let outcomes = try await store.add(
        [
          try Self.addition("c", order: 1), try Self.addition("b", order: 2), try Self.addition("a", order: 3), again,
        ], at: Self.start)
      try expectEqual(outcomes.map(\.record.id), ["c", "b", "a", "b"], "the order of the outcomes")
      try expectEqual(outcomes.map(\.isNew), [true, true, true, false], "isNew of the outcomes")
      try expectEqual(
        try await store.known("b").request.priority, .high, "the priority of the download that was added twice")
      try expectEqual(try await store.counts(.all)[.waiting] ?? 0, 3, "the number of downloads")
      try expectEqual(try await store.add([], at: Self.start).count, 0, "the outcome of adding nothing")
    }
    await report.check(
      "known-is-updated", "adding a known download updates its request and keeps its place"
    ) {
      let (_, store) = try await filled(["a", "b"])
      let before = try await store.known("b")
      var update = try Self.addition("b", order: 0, host: "mirror.example", tags: ["new"])
      update.location = "A"
      let outcome = try await store.add([update], at: Self.time(5))
      let after = try await store.known("b")
      try expectEqual(outcome.map(\.isNew), [false], "isNew")
      try expectEqual(outcome.map(\.record), [after], "the record of the outcome, compared with the one in the ledger,")
      try expectEqual(after.request, update.request, "the request")
      try expectEqual(after.added, nil, "the request as it was added, which is the request,")
      try expectEqual(after.generation, before.generation, "the generation")
      try expectEqual(after.arrival, before.arrival, "the order of arrival, which an update keeps,")
      try expectEqual(after.rank, before.rank, "the rank, which the order of arrival gives,")
      try expectEqual(after.location, "A", "the location of the download that had none")
      try expectEqual(after.createdAt, Self.start, "the time of the first addition")
      try expectEqual(after.updatedAt, Self.time(5), "the time of the last change")
      try expectEqual(try await store.counts(.tag("new"))[.waiting] ?? 0, 1, "the number of downloads with the new tag")
      try expectEqual(try await store.leased().map(\.id), ["a", "b"], "the order after the update")
    }
    await report.check("active-is-updated", "updating an active download keeps its lease") {
      let (_, store) = try await filled(["a"])
      var record = try expectValue(try await store.leased().first, "nothing was leased")
      _ = try await store.add([try Self.addition("a", order: 5, tags: ["t"])], at: Self.time(1))
      let after = try await store.known("a")
      try expectEqual(after.request.tags, ["t"], "the tags of the updated request")
      try expectEqual(after.phase, .transferring, "the phase")
      try expectEqual(after.owner, store.owner, "the owner")
      record.bytesFetched = 9
      try expect(try await store.save(record, .state, at: Self.time(2)), "the owner's save was refused")
      try expectEqual(try await store.known("a").request.tags, ["t"], "the tags after a save of the state only")
    }
    await report.check("failed-waits-again", "adding a failed download makes it wait again") {
      let (_, store) = try await filled(["a"])
      try await store.bring("a", to: .failed, Self.fill)
      _ = try await store.add([try Self.addition("a", order: 1)], at: Self.time(1))
      let record = try await store.known("a")
      try expectEqual(record.phase, .waiting, "the phase")
      try expectEqual(record.error, nil, "the error")
      try expectEqual(record.notBefore, nil, "the due time")
      try expectEqual(record.consecutiveFailures, 0, "the failures in a row")
      try expectEqual(record.checkpoint, Self.fullCheckpoint, "the checkpoint, whose partial is kept,")
      try expectEqual(record.updatedAt, Self.time(1), "the time of the change")
      try expectEqual(try await store.leased(at: Self.time(1)).map(\.id), ["a"], "what can be leased")
    }
    for phase in [DownloadState.Phase.finished, .paused, .cancelled] {
      await report.check(
        "\(phase.rawValue)-stays", "adding a download that is \(phase.rawValue) does not change its phase"
      ) {
        let (_, store) = try await filled(["a"])
        try await store.bring("a", to: phase, Self.fill)
        _ = try await store.add([try Self.addition("a", order: 1, tags: ["t"])], at: Self.time(1))
        let record = try await store.known("a")
        try expectEqual(record.phase, phase, "the phase")
        try expectEqual(record.request.tags, ["t"], "the tags of the new request")
        try expectEqual(record.checkpoint, Self.fullCheckpoint, "the checkpoint")
        try expectEqual(try await store.leased().count, 0, "the number of downloads that can be leased")
      }
    }
    await report.check("generation-grows", "a generation is never used again, even for an id that was removed") {
      let (ledger, store) = try await filled(["a", "b"])
      let old = try await store.known("b").generation
      _ = try await store.remove(.ids(["b"]))
      _ = try await store.add([try Self.addition("b", order: 2)], at: Self.start)
      let new = try await store.known("b").generation
      try expect(new > old, "the generation after remove and add is \(new), before it was \(old)")
      _ = try await store.remove(.all)
      try await store.close()
      let second = try await ledger.open()
      _ = try await second.add([try Self.addition("b", order: 2)], at: Self.start)
      let last = try await second.known("b").generation
      try expect(last > new, "the generation after a restart is \(last), before it was \(new)")
    }
  }
}
