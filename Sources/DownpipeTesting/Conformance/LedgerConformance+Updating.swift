@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  /// An error that only the change throws.
  private struct Refusal: Error, Equatable {}

  /// A ledger with two downloads, and the addition of the first, whose request has all fields set.
  private func merged() async throws -> (store: any LedgerStore, addition: LedgerAddition) {
    let (_, store) = try await opened()
    var addition = LedgerAddition(request: try Self.fullRequest("a"), arrival: 1)
    addition.request.tags = ["old"]
    _ = try await store.add([addition, try Self.addition("b", order: 2)], at: Self.start)
    return (store, addition)
  }

  func checkMerging(_ report: ConformanceReport) async {
    await report.check("unchanged-stays", "adding an unchanged request again changes nothing") {
      let (ledger, store) = try await opened()
      let additions = try ["a", "b", "c"].enumerated().map { index, id in
        LedgerAddition(request: try Self.fullRequest(DownloadID(id)), arrival: Int64(index))
      }
      _ = try await store.add(additions, at: Self.start)
      let before = try await store.records(DownloadQuery())
      let later = additions.map { addition in
        var addition = addition
        addition.arrival += 100
        return addition
      }
      let outcomes = try await store.add(Array(later.prefix(2)), at: Self.time(5))
      try expectEqual(outcomes.map(\.isNew), [false, false], "isNew of the outcomes")
      try expectEqual(outcomes.map(\.record), Array(before.prefix(2)), "the records of the outcomes")
      try expectEqual(try await store.records(DownloadQuery()), before, "the records")
      try expectEqual(try await store.leased().map(\.id), ["a", "b", "c"], "the order")
      try await store.close()
      let second = try await ledger.open()
      _ = try await second.add(later, at: Self.time(6))
      try expectEqual(
        try await second.known("a").updatedAt, Self.start, "the time of the last change, after a restart,")
    }
    await report.check(
      "add-merges", "changes since the last addition stay where the new request equals the last one"
    ) {
      let (store, first) = try await merged()
      _ = try await store.update("a", at: Self.time(1)) { record in
        record.request.priority = .high
        record.request.tags = ["mine"]
      }
      try expectEqual(try await store.known("a").added, first.request, "the request as it was added")
      var again = first
      again.request.metadata = ["title": "new"]
      again.request.tags = ["new"]
      let outcome = try await store.add([again], at: Self.time(2))
      let after = try await store.known("a")
      try expectEqual(outcome.map(\.record), [after], "the record of the outcome, compared with the one in the ledger,")
      try expectEqual(after.request.priority, .high, "the priority, which the request does not change,")
      try expectEqual(after.request.metadata, ["title": "new"], "the metadata, which the request changes,")
      try expectEqual(after.request.tags, ["new"], "the tags, which both have changed,")
      try expectEqual(after.added, again.request, "the request as it was added last")
      try expectEqual(after.updatedAt, Self.time(2), "the time of the last change")
      again.request.priority = .low
      _ = try await store.add([again], at: Self.time(3))
      try expectEqual(
        try await store.known("a").request, again.request, "the request after it was added with the changes")
      try expectEqual(try await store.known("a").added, nil, "the request as it was added, which is the request")
    }
    await report.check("link-is-merged", "adding a request again keeps a link that an attempt has changed") {
      let (store, first) = try await merged()
      var record = try expectValue(
        try await store.lease(LeaseRequest(now: Self.start, until: Self.time(60)) { _ in .take }).first, "no lease")
      record.request.url = try Self.request("x", host: "fresh.example").url
      record.request.headStart = nil
      try expect(try await store.save(record, .link, at: Self.time(1)), "the owner's save was refused")
      _ = try await store.add([first], at: Self.time(2))
      let after = try await store.known("a")
      try expectEqual(after.request, record.request, "the request")
      try expectEqual(after.added, first.request, "the request as it was added")
      try expectEqual(after.updatedAt, Self.time(1), "the time of the last change")
      var other = first
      other.request.url = try Self.request("x", host: "other.example").url
      _ = try await store.add([other], at: Self.time(3))
      try expectEqual(try await store.known("a").request.url, other.request.url, "the URL after another URL was added")
    }
    await report.check("add-keeps", "adding with keep does not change a known download") {
      let (_, store) = try await filled(["a", "b"])
      try await store.bring("a", to: .failed, Self.fill)
      let before = try await store.known("a")
      var addition = LedgerAddition(request: try Self.fullRequest("a"), arrival: 9, ifKnown: .keep)
      let outcome = try await store.add([addition], at: Self.time(1))
      try expectEqual(outcome.map(\.isNew), [false], "isNew")
      try expectEqual(outcome.map(\.record), [before], "the outcome's record")
      try expectEqual(try await store.known("a"), before, "the record")
      addition.request.id = "c"
      try expectEqual(
        try await store.add([addition], at: Self.time(1)).map(\.isNew), [true], "isNew of another download")
    }
    await report.check("add-belongs-here", "a download belongs to the store that added it last") {
      let (ledger, first) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      var kept = try Self.addition("b", order: 2)
      kept.ifKnown = .keep
      _ = try await second.add([try Self.addition("a", order: 1), kept], at: Self.time(1))
      try expectEqual(try await first.leased(scope: .own).map(\.id), ["c"], "the downloads that the first store leases")
      try expectEqual(
        try await second.leased(scope: .own).map(\.id), ["a", "b"], "the downloads that the second store leases")
    }
  }

  func checkUpdating(_ report: ConformanceReport) async {
    await report.check(
      "update-writes", "an update writes only the request, the location and the location of the artifact"
    ) {
      let (ledger, store) = try await opened()
      _ = try await store.add([try Self.addition("a", order: 1, tags: ["t"])], at: Self.start)
      try await store.bring("a", to: .paused)
      let before = try await store.known("a")
      let full = try Self.fullRequest("other")
      let updated = try await store.update("a", at: Self.time(9)) { record in
        Self.fill(&record)
        record.request = full
        record.location = "L"
        record.generation = 99
        record.arrival = 98
        record.rank = Rank(value: 97)
        record.phase = .failed
        record.owner = "me"
        record.attempts = 96
        record.createdAt = Self.time(95)
        record.updatedAt = Self.time(94)
      }
      var expected = before
      expected.request = full
      expected.request.id = "a"
      expected.added = before.request
      expected.location = "L"
      var filled = before
      Self.fill(&filled)
      expected.steps.artifact = filled.steps.artifact
      expected.steps.note = filled.steps.note
      expected.earlierArtifact = filled.earlierArtifact
      expected.updatedAt = Self.time(9)
      try expectEqual(updated, expected, "the result of the update")
      try expectEqual(try await store.known("a"), expected, "the record")
      try expectEqual(
        try await store.counts(.tag("t")).values.reduce(0, +), 0, "the number of downloads with the old tag")
      try expectEqual(
        try await store.counts(.tag("plain")).values.reduce(0, +), 1, "the number of downloads with the new tag")
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.known("a"), expected, "the record after a restart")
    }
    await report.check(
      "update-unchanged", "an update without changes writes nothing; without a record it returns nil"
    ) {
      let (store, _) = try await merged()
      let before = try await store.known("a")
      let same = try await store.update("a", at: Self.time(9)) { $0.request.priority = $0.request.priority }
      try expectEqual(same, before, "the result of the update")
      try expectEqual(try await store.known("a"), before, "the record")
      let none = try await store.update("none", at: Self.time(9)) { _ in throw Refusal() }
      try expectEqual(none, nil, "the result of the update of an unknown id")
    }
    await report.check("update-refused", "an error of the change is rethrown, and nothing is written") {
      let (store, _) = try await merged()
      let before = try await store.known("a")
      do {
        _ = try await store.update("a", at: Self.time(9)) { record in
          record.request.priority = .low
          throw Refusal()
        }
        throw Deviation("nothing was thrown")
      } catch is Refusal {}
      try expectEqual(try await store.known("a"), before, "the record")
    }
    await report.check("update-keeps-added", "the request as added is kept over any number of updates") {
      let (store, first) = try await merged()
      for priority in [Priority.high, .low] {
        _ = try await store.update("a", at: Self.time(1)) { $0.request.priority = priority }
      }
      try expectEqual(try await store.known("a").added, first.request, "the request as it was added")
      _ = try await store.update("a", at: Self.time(2)) { $0.request = first.request }
      try expectEqual(
        try await store.known("a").added, nil, "the request as it was added, after the request was restored")
    }
    await report.check("update-moves-in-queue", "an update ranks the download again and changes its candidate") {
      let (_, store) = try await opened()
      try await store.rank(
        by: Ranking(name: "test") { Rank().descending($0.priority).ascending($0.arrival) })
      let hosts = ["one.example", "one.example", "two.example"]
      _ = try await store.add(
        try hosts.enumerated().map { index, host in
          var addition = try Self.addition(DownloadID("\(index)"), order: Int64(index), host: host)
          addition.request.intent = .prefetch
          return addition
        }, at: Self.start)
      _ = try await store.update("1", at: Self.time(1)) { $0.request.priority = .high }
      _ = try await store.update("2", at: Self.time(1)) { $0.request.tags = ["slow"] }
      let leased = try await store.lease(
        LeaseRequest(now: Self.time(1), until: Self.time(60)) { $0.tags.contains("slow") ? .skip : .take })
      try expectEqual(leased.map(\.id), ["1", "0"], "the downloads leased")
      _ = try await store.update("2", at: Self.time(2)) { $0.request.tags = [] }
      try expectEqual(
        try await store.lease(LeaseRequest(now: Self.time(2), until: Self.time(60)) { _ in .take }).map(\.id), ["2"],
        "the downloads leased after another update")
    }
    await report.check(
      "update-held", "an update changes the request of any record, and the steps only without another owner"
    ) {
      let (ledger, first) = try await filled(["a", "b"])
      let second = try await ledger.open()
      let held = try expectValue(try await second.leased(["a"]).first, "nothing was leased")
      for store in [first, second] {
        _ = try await store.update("a", at: Self.time(1)) { record in
          record.request.priority = .high
          record.steps.note = "by \(store.owner)"
        }
        let after = try await first.known("a")
        try expectEqual(after.request.priority, .high, "the priority")
        try expectEqual(after.owner, second.owner, "the owner")
        try expectEqual(
          after.steps.note, store.owner == second.owner ? "by \(second.owner)" : nil, "the note of the steps")
      }
      try expect(try await second.save(held, .state, at: Self.time(2)), "the owner's save was refused")
      try expectEqual(try await first.known("a").request.priority, .high, "the priority after the owner's save")
    }
    await report.check("update-keeps-due-time", "an update keeps the due time") {
      let (_, store) = try await filled(["a"])
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(50) }
      _ = try await store.update("a", at: Self.time(1)) { $0.request.priority = .high }
      try expectEqual(try await store.leased(at: Self.time(2)).count, 0, "the number of downloads that can be leased")
      try expectEqual(
        try await store.leased(at: Self.time(50)).count, 1, "the number of downloads that can be leased at the due time"
      )
    }
  }
}
