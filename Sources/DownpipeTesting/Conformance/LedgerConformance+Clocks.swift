@_spi(Ledger) import DownpipeCore
import Foundation

// Machines whose clocks differ: the ledger's clock decides when a download is due.
//
// A ledger may take a small difference of two clocks for the time on the network: the rules leave ten seconds for it.
extension LedgerConformance {
  func checkClocks(_ report: ConformanceReport) async {
    let openAhead = openAhead
    func check(
      _ rule: String, _ expectation: String,
      _ body: @escaping @Sendable (any Ledger, _ other: OtherMachine) async throws -> Void
    ) async {
      await report.check(rule, expectation, when: openAhead != nil) {
        guard let openAhead else { return }
        for ahead in [3_600.0, -3_600] {
          let ledger = try await make()
          try await body(ledger, OtherMachine(store: try await openAhead(ledger, .seconds(ahead)), ahead: ahead))
        }
      }
    }
    await check("clocks-nothing-early", "a machine with another clock leases no download before it is due") {
      ledger, other in
      let store = try await ledger.open()
      _ = try await store.add([try Self.addition("a", order: 1)], at: Self.start)
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(300) }
      try expectNear(try await other.notBefore(of: "a"), 300, "the due time, as the other machine reads it")
      try expectNear(try await other.nextDue(after: 0), 300, "the next due time of the other machine")
      try expectEqual(try await other.leased(at: 290), [], "what the other machine leases before the due time")
      try expectEqual(try await other.leased(at: 310), ["a"], "what the other machine leases after the due time")
    }
    await check("clocks-nothing-late", "what a machine with another clock delays is due for all at the same moment") {
      ledger, other in
      let store = try await ledger.open()
      _ = try await other.store.add([try Self.addition("a", order: 1)], at: other.time(0))
      try await other.store.bring("a", to: .waiting, at: other.time(0)) { $0.notBefore = other.time(300) }
      try expectNear(try await other.notBefore(of: "a"), 300, "the due time, as its machine reads it")
      let due = try await store.known("a").notBefore
      try expectNear(due?.timeIntervalSince(Self.start), 300, "the due time, as another machine reads it")
      let next = try await store.nextDue(after: Self.start)
      try expectNear(next?.timeIntervalSince(Self.start), 300, "the next due time of another machine")
      try expectEqual(
        try await store.leased(at: Self.time(290)).map(\.id), [], "what another machine leases before the due time")
      try expectEqual(
        try await store.leased(at: Self.time(310)).map(\.id), ["a"], "what another machine leases after the due time")
    }
    await check("clocks-changes-keep-due-times", "a change by a machine with another clock leaves the due time") {
      ledger, other in
      let store = try await ledger.open()
      _ = try await store.add([try Self.addition("a", order: 1)], at: Self.start)
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(300) }
      let before = try await store.known("a").notBefore
      for number in 1...5 {
        _ = try await other.store.update("a", at: other.time(1)) { $0.request.metadata["number"] = "\(number)" }
        _ = try await store.update(.all, at: Self.time(1)) { $0.request.metadata["other"] = "\(number)" }
      }
      let after = try await store.known("a")
      try expectEqual(after.request.metadata, ["number": "5", "other": "5"], "the metadata")
      let moved = before.flatMap { before in after.notBefore.map { $0.timeIntervalSince(before) } }
      try expect(moved.map { abs($0) < 0.001 } ?? false, "the changes moved the due time by \(moved ?? .nan) seconds")
    }
    await check("clocks-user-dates", "a date that a user gives is the same on all machines") { ledger, other in
      var addition = try Self.addition("a", order: 1)
      addition.request.deadline = Self.time(300)
      _ = try await other.store.add([addition], at: other.time(0))
      try expectEqual(
        try await ledger.open().known("a").request.deadline, Self.time(300), "the deadline on another machine")
    }
  }

  /// A store on a machine whose clock is ahead of the ledger's. Its times are seconds after the start by the ledger's clock.
  private struct OtherMachine: Sendable {
    let store: any LedgerStore
    let ahead: Double

    func time(_ seconds: Double) -> Date { LedgerConformance.time(seconds + ahead) }

    func notBefore(of id: DownloadID) async throws -> Double? {
      try await store.known(id).notBefore?.timeIntervalSince(time(0))
    }

    func nextDue(after seconds: Double) async throws -> Double? {
      try await store.nextDue(after: time(seconds))?.timeIntervalSince(time(0))
    }

    func leased(at seconds: Double) async throws -> [DownloadID] {
      try await store.leased(at: time(seconds), until: time(seconds + 60)).map(\.id)
    }
  }
}

/// Throws a ``Deviation`` unless a time, in seconds after the start, is about the expected one.
private func expectNear(_ found: Double?, _ wanted: Double, _ what: @autoclosure () -> String) throws {
  let isNear = found.map { abs($0 - wanted) < 10 } ?? false
  try expect(
    isNear, "\(what()) is \(found.map { "\($0)" } ?? "missing") instead of \(wanted) seconds after the start")
}
