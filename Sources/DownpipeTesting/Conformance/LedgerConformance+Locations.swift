@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  func checkScopes(_ report: ConformanceReport) async {
    await report.check(
      "lease-own", "with the scope own a store leases only downloads that were added or resumed through it"
    ) {
      let (ledger, first) = try await filled(["a", "b", "c", "d"])
      let second = try await ledger.open()
      _ = try await second.add([try Self.addition("e", order: 5)], at: Self.start)
      // Added again, and resumed, through the other store.
      _ = try await second.add([try Self.addition("b", order: 2)], at: Self.start)
      _ = try await first.transition(.ids(["c"]), .pause, at: Self.start)
      _ = try await second.transition(.ids(["c"]), .resume, at: Self.start)
      let asked = Mutex(0)
      let leased = try await second.lease(
        LeaseRequest(now: Self.start, until: Self.time(60), scope: .own) { _ in
          asked.withLock { $0 += 1 }
          return .take
        })
      try expectEqual(leased.map(\.id), ["b", "c", "e"], "the downloads leased")
      try expectEqual(asked.withLock { $0 }, 3, "the number of candidates of select")
      try expectEqual(
        try await first.leased(scope: .own).map(\.id), ["a", "d"], "the downloads that the other store leases")
    }
    await report.check("lease-tag", "with a tag as scope a store leases only downloads with the tag") {
      let (_, store) = try await opened()
      _ = try await store.add(
        [
          try Self.addition("a", order: 1, tags: ["x"]), try Self.addition("b", order: 2),
          try Self.addition("c", order: 3, tags: ["x", "y"]), try Self.addition("d", order: 4, tags: ["y"]),
        ], at: Self.start)
      try expectEqual(try await store.leased(scope: .tag("z")).map(\.id), [], "the downloads leased for an unused tag")
      try expectEqual(
        try await store.leased(scope: .tag("x")).map(\.id), ["a", "c"], "the downloads leased for the tag")
      _ = try await store.update("b", at: Self.start) { $0.request.tags = ["x"] }
      _ = try await store.update("d", at: Self.start) { $0.request.tags = [] }
      try expectEqual(try await store.leased(scope: .tag("y")).map(\.id), [], "the downloads leased for a removed tag")
      try expectEqual(try await store.leased(scope: .tag("x")).map(\.id), ["b"], "the downloads leased for a new tag")
    }
    await report.check("lease-ids", "with ids as scope a store leases exactly those downloads, in order of rank") {
      let (_, store) = try await filled(["a", "b", "c", "d", "e", "f"])
      let scope = LeaseScope.ids(["f", "b", "new", "d", "none"])
      try await store.bring("d", to: .waiting) { $0.notBefore = Self.time(10) }
      let asked = Mutex(0)
      let first = try await store.lease(
        LeaseRequest(now: Self.start, until: Self.time(60), scope: scope) { _ in
          asked.withLock { $0 += 1 }
          return asked.withLock { $0 } == 1 ? .take : .stop
        })
      try expectEqual(first.map(\.id), ["b"], "the downloads leased first")
      try expectEqual(asked.withLock { $0 }, 2, "the number of candidates of select")
      // One download is added, one is given back, one becomes due, and one is removed.
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
      try expectEqual(second.map(\.id), ["new", "b", "d"], "the downloads leased later")
      try expectEqual(later.withLock { $0 }, 3, "the number of later candidates of select")
      _ = try await store.transition(.ids(["f"]), .resume, at: Self.time(11))
      _ = try await store.remove(.ids(["f"]))
      _ = try await store.add([try Self.addition("f", order: 9)], at: Self.time(12))
      try expectEqual(
        try await store.leased(at: Self.time(12), scope: scope).map(\.id), ["f"], "the downloads leased last")
      try expectEqual(
        try await store.leased(at: Self.time(12)).map(\.id), ["a", "c", "e", "g"],
        "the downloads left for the scope all")
    }
    await report.check(
      "lease-own-again", "a download stays in the scope own of the store that added it after a failed attempt"
    ) {
      let (ledger, first) = try await filled(["a"])
      let second = try await ledger.open()
      try await second.bring("a", to: .waiting)
      try expectEqual(
        try await second.leased(scope: .own).count, 0, "the number of downloads leased by the store that ran it")
      try expectEqual(
        try await first.leased(scope: .own).map(\.id), ["a"], "the downloads leased by the store that added it")
    }
  }

  /// A ledger with three downloads: one at A, one at B, and one without a location.
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
    await report.check("location-is-kept", "a download keeps the location that it was added with, also after a restart")
    {
      let (ledger, store) = try await located()
      try await store.close()
      let second = try await ledger.open()
      try expectEqual(try await second.known("a").location, "A", "the location")
      try expectEqual(
        try await second.known("any").location, nil, "the location of a download that was added without one")
    }
    await report.check("lease-location", "a lease for a location selects downloads of that location or of none") {
      let (_, store) = try await located()
      try expectEqual(try await store.leased(location: "A").map(\.id), ["a", "any"], "the downloads leased for A")
      try expectEqual(try await store.leased(location: "C").map(\.id), [], "the downloads leased for C")
      try expectEqual(try await store.leased().map(\.id), ["b"], "the downloads leased for all locations")
    }
    await report.check("query-location", "a query for a location selects downloads of that location or of none") {
      let (_, store) = try await located()
      for order in [DownloadQuery.Order.arrival, .rank, .latestChange] {
        let found = try await store.records(DownloadQuery(location: "B", order: order))
        try expectEqual(Set(found.map(\.id)), ["b", "any"], "the downloads found at B in the order \(order.rawValue)")
      }
    }
    await report.check(
      "count-location", "counts, totals and selections for a location have downloads of that location or of none"
    ) {
      let (_, store) = try await located()
      try await store.bring("a", to: .finished)
      func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
        let counts = try await store.counts(filter).filter { $0.value != 0 }
        let totals = try await store.totals(filter).counts.filter { $0.value != 0 }
        try expectEqual(totals, counts, "the counts in the totals of \(filter)")
        return counts
      }
      for (location, expected) in [
        ("A", [.finished: 1, .waiting: 1]), ("B", [.waiting: 2]), ("C", [.waiting: 1]),
        (nil, [.finished: 1, .waiting: 2]),
      ] as [(String?, [DownloadState.Phase: Int])] {
        let here = location ?? "all locations"
        try expectEqual(try await counts(DownloadFilter(location: location)), expected, "the counts at \(here)")
        let waiting = expected.filter { $0.key == .waiting }
        try expectEqual(
          try await counts(DownloadFilter(phases: [.waiting], location: location)), waiting,
          "the counts of waiting downloads at \(here)")
      }
      // Where all belong to one location, too.
      _ = try await store.transition(.matching(DownloadFilter(location: "B")), .pause, at: Self.time(2))
      try expectEqual(try await store.known("b").phase, .paused, "the phase after its location was paused")
      _ = try await store.remove(.ids(["b"]))
      try expectEqual(
        try await counts(DownloadFilter(location: "A")), [.finished: 1, .paused: 1], "the counts of all at one location"
      )
    }
    await report.check("add-elsewhere", "a download that is added for another location starts again") {
      let (_, store) = try await located()
      try await store.bring("a", to: .finished, Self.fill)
      let old = try await store.known("a")
      let outcome = try expectValue(
        try await store.add([try Self.addition("a", order: 9, location: "B")], at: Self.time(1)).first, "no outcome")
      let new = try await store.known("a")
      try expect(outcome.isNew, "isNew is false")
      try expect(
        new.generation > old.generation, "its generation is \(new.generation), before it was \(old.generation)")
      var expected = DownloadRecord(
        request: try Self.request("a"), generation: new.generation, arrival: 9, rank: new.rank, location: "B",
        createdAt: Self.time(1))
      expected.updatedAt = new.updatedAt
      try expectEqual(new, expected, "the record")
      try expectEqual(try await store.counts(.all)[.waiting] ?? 0, 3, "the number of waiting downloads")
    }
    await report.check(
      "add-active-elsewhere", "adding a download that is active at another location throws .inUse and adds nothing"
    ) {
      let (_, store) = try await located()
      let held = try expectValue(try await store.leased(["a"]).first, "nothing was leased")
      try await expectError(.inUse, when: "adding a download that is active at another location") {
        _ = try await store.add(
          [
            try Self.addition("new", order: 8, location: "B"), try Self.addition("a", order: 9, location: "B"),
          ], at: Self.time(1))
      }
      try expectEqual(try await store.known("a"), held, "the record")
      try expectEqual(try await store.record("new"), nil, "the record of the download that was added with it")
      _ = try await store.add([try Self.addition("a", order: 9, location: "A")], at: Self.time(1))
      try expectEqual(
        try await store.known("a").owner, store.owner, "the owner after adding it for its own location")
    }
    await report.check("add-lost", "a finished download starts again if its artifact is lost, and only then") {
      let (_, store) = try await located()
      try await store.bring("a", to: .finished, Self.fill)
      let old = try await store.known("a")
      var addition = try Self.addition("a", order: 1, location: "A")
      addition.lost = old.steps.artifact
      addition.lost?.size = 11
      try expectEqual(
        try await store.add([addition], at: Self.time(1)).map(\.isNew), [false],
        "isNew for another artifact")
      try expectEqual(try await store.known("a").phase, .finished, "the phase after another artifact was lost")
      addition.lost = old.steps.artifact
      try expectEqual(try await store.add([addition], at: Self.time(2)).map(\.isNew), [true], "isNew")
      let new = try await store.known("a")
      try expect(
        new.generation > old.generation, "its generation is \(new.generation), before it was \(old.generation)")
      try expectEqual(new.phase, .waiting, "the phase")
      try expectEqual(new.steps, StepLog(), "the steps")
    }
    await report.check("add-keeps-due-time", "adding a download that waits for a time keeps its due time") {
      let (_, store) = try await located()
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(50) }
      _ = try await store.add([try Self.addition("a", order: 1, location: "A")], at: Self.time(1))
      try expectEqual(try await store.known("a").notBefore, Self.time(50), "the due time")
      try expectEqual(
        try await store.leased(["a"], at: Self.time(2)).count, 0, "the number of downloads that can be leased")
    }
  }
}
