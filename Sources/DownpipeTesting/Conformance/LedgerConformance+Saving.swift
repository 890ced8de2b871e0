@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkSaving(_ report: ConformanceReport) async {
    let parts: [(name: String, fields: RecordFields)] = [
      ("state", .state), ("checkpoint", .checkpoint), ("steps", .steps),
    ]
    for part in parts {
      await report.check("save-\(part.name)-only", "a save of the \(part.name) writes only the \(part.name)") {
        let (_, store) = try await filled(["a"])
        let before = try expectValue(try await store.leased().first, "nothing was leased")
        var full = before
        Self.fill(&full)
        full.attempts = 5
        full.phase = .processing
        full.request = try Self.fullRequest("a")
        full.added = try Self.request("a")
        full.rank = Rank(value: 3)
        full.location = "elsewhere"
        try expect(try await store.save(full, part.fields, at: Self.time(2)), "save was refused")
        var expected = before
        expected.updatedAt = Self.time(2)
        if part.fields.contains(.checkpoint) {
          (expected.checkpoint, expected.versions) = (full.checkpoint, full.versions)
        }
        if part.fields.contains(.steps) { (expected.steps, expected.refreshing) = (full.steps, full.refreshing) }
        if part.fields.contains(.state) {
          expected.phase = full.phase
          expected.notBefore = full.notBefore
          expected.error = full.error
          expected.attempts = full.attempts
          expected.consecutiveFailures = full.consecutiveFailures
          expected.awaited = full.awaited
          expected.repeatedFailures = full.repeatedFailures
          expected.bytesFetched = full.bytesFetched
          expected.resumedFrom = full.resumedFrom
          expected.wasInterrupted = full.wasInterrupted
          expected.earlierArtifact = full.earlierArtifact
          expected.isPausedTogether = full.isPausedTogether
        }
        try expectEqual(try await store.known("a"), expected, "the record")
      }
    }
    await report.check("saving-a-link-leaves-the-rest", "a save of the link keeps the rest of the request") {
      let (_, store) = try await filled(["a"])
      var record = try expectValue(try await store.leased().first, "nothing was leased")
      // Another caller changes it meanwhile.
      let other = try Self.addition("a", order: 9, tags: ["new"])
      _ = try await store.add([other], at: Self.time(1))
      let full = try Self.fullRequest("a")
      record.request = full
      try expect(try await store.save(record, .link, at: Self.time(2)), "save was refused")
      var expected = other.request
      expected.url = full.url
      expected.headers = full.headers
      expected.headStart = full.headStart
      let after = try await store.known("a")
      try expectEqual(after.request, expected, "the request")
      try expectEqual(after.added, other.request, "the request as it was added")
    }
    await report.check(
      "save-needs-the-lease", "save is refused and writes nothing unless this owner holds the record"
    ) {
      let (ledger, first) = try await filled(["a", "b"])
      let second = try await ledger.open()
      let before = try await first.known("b")
      var changed = before
      changed.bytesFetched = 1
      changed.checkpoint.name = "changed"
      changed.steps.completed = ["one"]
      let all: RecordFields = [.state, .checkpoint, .steps, .link]
      for fields in [all, .state, .checkpoint, .steps, .link] {
        try expect(try await !first.save(changed, fields, at: Self.time(1)), "a save of a waiting record was accepted")
      }
      try expectEqual(try await first.known("b"), before, "the record after the refusal")

      var held = try expectValue(try await second.leased(["a"]).first, "nothing was leased")
      for fields in [all, .state, .checkpoint, .steps, .link] {
        try expect(
          try await !first.save(held, fields, at: Self.time(1)), "a save of a record of another owner was accepted")
      }
      try expectEqual(try await first.known("a"), held, "the record after the refusal")

      held.generation += 1_000
      for fields in [all, .checkpoint] {
        try expect(try await !second.save(held, fields, at: Self.time(1)), "a save of another generation was accepted")
      }
    }
    await report.check("save-after-remove", "save is refused when the record was removed, even if it was added again") {
      let (_, store) = try await filled(["a"])
      let old = try expectValue(try await store.leased().first, "nothing was leased")
      _ = try await store.remove(.ids(["a"]))
      try expect(try await !store.save(old, .state, at: Self.time(1)), "a save of a removed record was accepted")
      _ = try await store.add([try Self.addition("a", order: 1)], at: Self.time(1))
      let new = try expectValue(try await store.leased().first, "nothing was leased")
      try expect(try await !store.save(old, .checkpoint, at: Self.time(2)), "a save of the old generation was accepted")
      try expectEqual(try await store.known("a"), new, "the new record")
    }
    for phase in DownloadState.Phase.allCases {
      let gives = phase.isActive ? "keeps the lease" : "gives the lease back"
      await report.check("save-\(phase.rawValue)-lease", "a save with the phase “\(phase.rawValue)” \(gives)") {
        let (ledger, store) = try await filled(["a"])
        try await store.bring("a", to: phase)
        let record = try await store.known("a")
        try expectEqual(record.phase, phase, "the phase")
        try expectEqual(record.owner, phase.isActive ? store.owner : nil, "the owner")
        try expectEqual(
          try await store.save(record, .checkpoint, at: Self.time(1)), phase.isActive,
          "whether a later save is accepted")
        let second = try await ledger.open()
        try expectEqual(
          try await second.leased().count, phase == .waiting ? 1 : 0,
          "the number of downloads that another owner can lease")
      }
    }
  }

  func checkLeases(_ report: ConformanceReport) async {
    await report.check("reclaim-lapsed", "a record whose owner is gone waits again when its lease has expired") {
      let ledger = try await make()
      var first: (any LedgerStore)? = try await ledger.open()
      for (order, id) in ["a", "b", "c"].enumerated() {
        _ = try await first?.add([try Self.addition(DownloadID(id), order: Int64(order))], at: Self.start)
      }
      var record = try expectValue(try await first?.leased(["a"], until: Self.time(10)).first, "nothing was leased")
      _ = try await first?.leased(["b"], until: Self.time(20))
      Self.fill(&record)
      record.phase = .processing
      record.wasInterrupted = false
      _ = try await first?.save(record, [.state, .checkpoint, .steps], at: Self.start)
      first = nil
      try await expectReclaimed(record, ledger)
    }
    await report.check("live-is-kept", "an owner that renews its leases in time keeps its records") {
      let (ledger, first) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      _ = try await first.leased(["a", "b"], until: Self.time(10))
      try expectEqual(
        try await second.reclaim(at: Self.time(9)), 0, "the number of records reclaimed before a lease expired")
      try await first.renewLeases(until: Self.time(100))
      try expectEqual(
        try await second.reclaim(at: Self.time(50)), 0, "the number of records reclaimed after the leases were renewed")
      try expectEqual(try await first.known("a").owner, first.owner, "the owner of a renewed record")
      try expectEqual(try await first.known("b").owner, first.owner, "the owner of a renewed record")
    }
  }

  /// Checks three downloads after the owner of two is gone, whose leases expire at 10 and at 20.
  private func expectReclaimed(_ record: DownloadRecord, _ ledger: any Ledger) async throws {
    let second = try await ledger.open()
    // An owner that is provably gone loses its records before the leases expire.
    let early = try await second.reclaim(at: Self.time(9))
    let late = try await second.reclaim(at: Self.time(20))
    try expectEqual(early + late, 2, "the number of records reclaimed until all leases had expired")
    var expected = record
    expected.phase = .processing
    expected.apply(.leaseLost)
    var after = try await second.known("a")
    try expect(after.updatedAt == Self.time(9) || after.updatedAt == Self.time(20), "the time of the change is wrong")
    after.updatedAt = expected.updatedAt
    try expectEqual(after, expected, "the saved record")
    try expectEqual(try await second.known("b").phase, .waiting, "the phase of the other record")
    try expectEqual(
      try await second.known("c").wasInterrupted, false, "wasInterrupted of the record that was not leased")
    try expectEqual(
      try await second.leased(["a"], at: Self.time(21)).count, 1, "the number of downloads that another owner can lease"
    )
  }
}
