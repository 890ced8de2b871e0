import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  func checkScopes(_ report: ConformanceReport) async {
    await report.check("lease-own", "with the scope own a store leases what was added or resumed through it only") {
      let (ledger, first) = try await filled(["a", "b", "c", "d"])
      let second = try await ledger.open()
      _ = try await second.add([try Self.addition("e", order: 5)], at: Self.start)
      // Added again through the other one, and resumed through it.
      _ = try await second.add([try Self.addition("b", order: 2)], at: Self.start)
      _ = try await first.transition(.ids(["c"]), .pause, at: Self.start)
      _ = try await second.transition(.ids(["c"]), .resume, at: Self.start)
      let asked = Mutex(0)
      let leased = try await second.lease(
        LeaseRequest(now: Self.start, until: Self.time(60), scope: .own) { _ in
          asked.withLock { $0 += 1 }
          return .take
        })
      try expectEqual(leased.map(\.id), ["b", "c", "e"], "what was leased")
      try expectEqual(asked.withLock { $0 }, 3, "how many select was asked about")
      try expectEqual(try await first.leased(scope: .own).map(\.id), ["a", "d"], "what the other store leases")
    }
    await report.check("lease-tag", "with a tag as scope a store leases what bears it") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2),
          try Self.addition("c", order: 3, tags: ["x", "y"]), try Self.addition("d", order: 4, tags: ["y"]),
        ], at: Self.start)
      try expectEqual(try await store.leased(scope: .tag("z")).map(\.id), [], "what bears a tag that nothing bears")
      try expectEqual(try await store.leased(scope: .tag("x")).map(\.id), ["a", "c"], "what bears the tag")
      _ = try await store.update("b", at: Self.start) { $0.request.tags = ["x"] }
      _ = try await store.update("d", at: Self.start) { $0.request.tags = [] }
      try expectEqual(try await store.leased(scope: .tag("y")).map(\.id), [], "what bears a tag that was taken away")
      try expectEqual(try await store.leased(scope: .tag("x")).map(\.id), ["b"], "what was given the tag")
    }
    await report.check("lease-ids", "with ids as scope a store leases those, in order of rank, and no others") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e", "f"])
      let scope = LeaseScope.ids(["f", "b", "new", "d", "none"])
      try await store.bring("d", to: .waiting) { $0.notBefore = Self.time(10) }
      let asked = Mutex(0)
      let first = try await store.lease(
        LeaseRequest(now: Self.start, until: Self.time(60), scope: scope) { _ in
          asked.withLock { $0 += 1 }
          return asked.withLock { $0 } == 1 ? .take : .stop
        })
      try expectEqual(first.map(\.id), ["b"], "what was leased at first")
      try expectEqual(asked.withLock { $0 }, 2, "how many select was asked about")
      // One is added, one gives its place back, one becomes due, and one leaves.
      _ = try await store.add([try Self.addition("new", order: 0), try Self.addition("g", order: 7)], at: Self.start)
      var record = try expectValue(first.first, "nothing was leased")
      record.apply(.suspended)
      _ = try await store.save(record, .state, at: Self.time(9))
      _ = try await store.transition(.ids(["f"]), .pause, at: Self.time(9))
      let later = Mutex(0)
      let second = try await store.lease(
        LeaseRequest(now: Self.time(10), until: Self.time(60), scope: scope) { _ in
          later.withLock { $0 += 1 }
          return .take
        })
      try expectEqual(second.map(\.id), ["new", "b", "d"], "what was leased later")
      try expectEqual(later.withLock { $0 }, 3, "how many select was asked about later")
      _ = try await store.transition(.ids(["f"]), .resume, at: Self.time(11))
      _ = try await store.remove(.ids(["f"]), limit: 1)
      _ = try await store.add([try Self.addition("f", order: 9)], at: Self.time(12))
      try expectEqual(
        try await store.leased(at: Self.time(12), scope: scope).map(\.id), ["f"], "what was leased at last")
      try expectEqual(
        try await store.leased(at: Self.time(12)).map(\.id), ["a", "c", "e", "g"], "what was left for the scope all")
    }
    await report.check("lease-own-again", "what a store added stays its own when an attempt has failed") {
      let (ledger, first) = try await filled(["a"])
      let second = try await ledger.open()
      try await second.bring("a", to: .waiting)
      try expectEqual(try await second.leased(scope: .own).count, 0, "how many the store leases that ran it before")
      try expectEqual(try await first.leased(scope: .own).map(\.id), ["a"], "what the store leases that added it")
    }
  }

  /// Three downloads: one at A, one at B, one that belongs to any location.
  private func located() async throws -> (ledger: any Ledger, store: any LedgerStore) {
    let (ledger, store) = try await opened()
    _ = try await store.add(
      [
        try Self.addition("a", order: 1, location: "A"), try Self.addition("b", order: 2, location: "B"),
        try Self.addition("any", order: 3),
      ], at: Self.start)
    return (ledger, store)
  }

  func checkLocations(_ report: ConformanceReport) async {
    await report.check("location-is-kept", "a download belongs to the location it was added with, after a restart too")
    {
      let (ledger, store) = try await located()
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.known("a").location, "A", "the location")
      try expectEqual(try await second.known("any").location, nil, "the location of one that was added without")
    }
    await report.check("lease-location", "a lease for a location hands out what belongs to it or to none") {
      let (_, store) = try await located()
      try expectEqual(try await store.leased(location: "A").map(\.id), ["a", "any"], "what was leased for A")
      try expectEqual(try await store.leased(location: "C").map(\.id), [], "what was leased for C")
      try expectEqual(try await store.leased().map(\.id), ["b"], "what was leased for any")
    }
    await report.check("query-location", "a query for a location means what belongs to it or to none") {
      let (_, store) = try await located()
      for order in [DownloadQuery.Order.arrival, .rank, .latestChange] {
        let found = try await store.records(DownloadQuery(location: "B", order: order))
        try expectEqual(Set(found.map(\.id)), ["b", "any"], "what was found at B in the order \(order.rawValue)")
      }
    }
    await report.check("add-elsewhere", "a download that is added for another location starts anew") {
      let (_, store) = try await located()
      try await store.bring("a", to: .finished, Self.fill)
      let old = try await store.known("a")
      let outcome = try expectValue(
        try await store.add([try Self.addition("a", order: 9, location: "B")], at: Self.time(1)).first, "no outcome")
      let new = try await store.known("a")
      try expect(outcome.isNew, "the outcome does not say that it is new")
      try expect(
        new.generation > old.generation, "its generation is \(new.generation), before it was \(old.generation)")
      var expected = DownloadRecord(
        request: try Self.request("a"), generation: new.generation, arrival: 9, rank: new.rank, location: "B",
        createdAt: Self.time(1))
      expected.updatedAt = new.updatedAt
      try expectEqual(new, expected, "the record")
      try expectEqual(try await store.counts(tag: nil)[.waiting] ?? 0, 3, "how many wait")
    }
    await report.check("add-active-elsewhere", "one that is active at another location is in use, and nothing is added")
    {
      let (_, store) = try await located()
      let held = try expectValue(try await store.leased(["a"]).first, "nothing was handed out")
      try await expectError(.inUse, when: "adding what is active elsewhere") {
        _ = try await store.add(
          [
            try Self.addition("new", order: 8, location: "B"), try Self.addition("a", order: 9, location: "B"),
          ], at: Self.time(1))
      }
      try expectEqual(try await store.known("a"), held, "the record")
      try expectEqual(try await store.record("new"), nil, "the record of what was added with it")
      _ = try await store.add([try Self.addition("a", order: 9, location: "A")], at: Self.time(1))
      try expectEqual(
        try await store.known("a").owner, store.owner, "the owner, after it was added for its own location")
    }
    await report.check("add-lost", "a finished download whose artifact is lost starts anew, another one stays") {
      let (_, store) = try await located()
      try await store.bring("a", to: .finished, Self.fill)
      let old = try await store.known("a")
      var addition = try Self.addition("a", order: 1, location: "A")
      addition.lost = old.steps.artifact
      addition.lost?.size = 11
      try expectEqual(
        try await store.add([addition], at: Self.time(1)).map(\.isNew), [false],
        "whether it is new for another artifact")
      try expectEqual(try await store.known("a").phase, .finished, "the phase after another artifact was lost")
      addition.lost = old.steps.artifact
      try expectEqual(try await store.add([addition], at: Self.time(2)).map(\.isNew), [true], "whether it is new")
      let new = try await store.known("a")
      try expect(
        new.generation > old.generation, "its generation is \(new.generation), before it was \(old.generation)")
      try expectEqual(new.phase, .waiting, "the phase")
      try expectEqual(new.steps, StepLog(), "the steps")
    }
    await report.check("add-keeps-due-time", "a download that waits for a time does not become due by being added") {
      let (_, store) = try await located()
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(50) }
      _ = try await store.add([try Self.addition("a", order: 1, location: "A")], at: Self.time(1))
      try expectEqual(try await store.known("a").notBefore, Self.time(50), "the due time")
      try expectEqual(try await store.leased(["a"], at: Self.time(2)).count, 0, "how many can be leased")
    }
  }

  func checkExchanges(_ report: ConformanceReport) async {
    await report.check("exchange", "an exchange saves, then leases what comes next, also of what it has just saved") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e"])
      let held = try await store.leased(["a", "b", "c"])
      try expectEqual(held.count, 3, "how many were leased")
      _ = try await store.remove(.ids(["b"]), limit: 1)
      let saves = held.map { record in
        var record = record
        record.apply(record.id == "c" ? .failedForNow : .bytesComplete)
        record.apply(.stepsComplete)
        record.bytesFetched = 7
        return LedgerSave(record, .state)
      }
      let exchange = try await store.exchange(
        saves, leasing: LeaseRequest(now: Self.time(1), until: Self.time(60)) { _ in .take }, at: Self.time(1))
      try expectEqual(exchange.saved, [true, false, true], "what was saved; the second was removed before")
      try expectEqual(exchange.leased.map(\.id), ["c", "d", "e"], "what was leased")
      try expectEqual(try await store.known("a").phase, .finished, "the phase of what had ended")
      try expectEqual(try await store.known("a").bytesFetched, 7, "the bytes fetched of what had ended")
      try expectEqual(try await store.record("b"), nil, "the record that was removed")
      try expectEqual(try await store.known("c"), exchange.leased.first, "the record of what was leased again")
      let empty = try await store.exchange([], leasing: nil, at: Self.time(1))
      try expectEqual(empty.saved.count + empty.leased.count, 0, "what an empty exchange did")
    }
  }
}
