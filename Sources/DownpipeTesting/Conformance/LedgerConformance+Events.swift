@_spi(Ledger) import DownpipeCore
import Foundation

extension LedgerConformance {
  func checkEvents(_ report: ConformanceReport) async {
    for seed in 1...3 as ClosedRange<UInt64> {
      await report.check("events-\(seed)", "events change records as DownloadRecord.apply does, in random order") {
        let (_, store) = try await opened()
        var life = try await Life(store, seed: seed)
        for step in 0..<150 { try await life.step(step) }
      }
    }
    await report.check("leased-is-no-transition", "a transition does not make downloads active") {
      let (_, store) = try await filled(["a"])
      _ = try? await store.transition(.all, .leased, at: Self.start)
      try expectEqual(try await store.known("a").phase, .waiting, "the phase")
    }
  }

  /// Downloads with random events, and a model of them.
  private struct Life {
    private static let ids: [DownloadID] = ["a", "b", "c", "d", "e"]

    private let store: any LedgerStore
    private var generator: SeededGenerator
    private var model: [DownloadID: DownloadRecord] = [:]

    init(_ store: any LedgerStore, seed: UInt64) async throws {
      self.store = store
      generator = SeededGenerator(seed: seed)
      for (index, id) in Self.ids.enumerated() {
        let outcomes = try await store.add(
          [try LedgerConformance.addition(id, order: Int64(index), tags: ["t"])], at: LedgerConformance.start)
        model[id] = outcomes.first?.record
      }
    }

    mutating func step(_ number: Int) async throws {
      let now = LedgerConformance.time(Double(number))
      let id = Self.ids[Int.random(in: 0..<Self.ids.count, using: &generator)]
      let what: String
      switch Int.random(in: 0..<8, using: &generator) {
      case 0, 1: what = try await transition(.ids([id]), [id], at: now)
      case 2: what = try await transition(.all, Self.ids, at: now)
      case 3: what = try await transition(.matching(.tag("t")), Self.ids, at: now)
      case 4:
        what = "add of \(id)"
        let addition = try LedgerConformance.addition(
          id, order: Int64.random(in: 0..<100, using: &generator), tags: ["t"])
        _ = try await store.add([addition], at: now)
        change(id) { if $0.apply(.addedAgain) { $0.updatedAt = now } }
      case 5, 6: what = try await lease(id, at: now)
      default: what = try await save(at: now)
      }
      for id in Self.ids {
        let found = try await store.known(id)
        try expectEqual(
          Self.comparable(found, at: now), model[id].map { Self.comparable($0, at: now) },
          "the record of “\(id)” after step \(number), \(what),")
      }
      let counts = Dictionary(grouping: model.values, by: \.phase).mapValues(\.count)
      try expectEqual(
        try await store.counts(.all).filter { $0.value != 0 }, counts, "the counts after step \(number), \(what),")
    }

    /// Removes due times that have passed: a ledger may drop them at any time.
    private static func comparable(_ record: DownloadRecord, at now: Date) -> DownloadRecord {
      var record = record
      if record.phase == .waiting, let due = record.notBefore, due <= now { record.notBefore = nil }
      return record
    }

    private mutating func change(_ id: DownloadID, _ change: (inout DownloadRecord) -> Void) {
      if var record = model[id] {
        change(&record)
        model[id] = record
      }
    }

    private mutating func transition(
      _ selection: LedgerSelection, _ ids: [DownloadID], at now: Date
    ) async throws -> String {
      let events = Lifecycle.Event.allCases.filter { $0 != .leased }
      let event = events[Int.random(in: 0..<events.count, using: &generator)]
      let result = try await store.transition(selection, event, at: now)
      var moved: Set<DownloadID> = []
      for id in ids {
        change(id) { record in
          guard record.owner == nil, record.apply(event) else { return }
          record.updatedAt = now
          moved.insert(id)
        }
      }
      try expectEqual(Set(result.ids), moved, "the records that “\(event)” moved")
      try expectEqual(result.count, moved.count, "the number of records that “\(event)” moved")
      return "the event “\(event)” for \(selection)"
    }

    private mutating func lease(_ id: DownloadID, at now: Date) async throws -> String {
      let leased = try await store.leased([id], at: now)
      let owner = store.owner
      var expected: DownloadRecord?
      change(id) { record in
        guard record.phase == .waiting, record.notBefore.map({ $0 <= now }) ?? true else { return }
        record.apply(.leased)
        record.owner = owner
        record.updatedAt = now
        expected = record
      }
      try expectEqual(leased.first, expected, "the result of the lease of “\(id)”")
      return "a lease of “\(id)”"
    }

    /// Saves the progress or the outcome of a run.
    private mutating func save(at now: Date) async throws -> String {
      guard let held = Self.ids.compactMap({ model[$0] }).first(where: { $0.owner != nil }) else { return "nothing" }
      let events = Lifecycle.Event.allCases.filter { Lifecycle.next(held.phase, $0) != nil }
      let event = events[Int.random(in: 0..<events.count, using: &generator)]
      var record = held
      LedgerConformance.fill(&record)
      record.apply(event)
      if event == .failedForNow { record.notBefore = now.addingTimeInterval(3) }
      try expect(
        try await store.save(record, [.state, .checkpoint, .steps], at: now), "the save of “\(record.id)” was refused")
      record.updatedAt = now
      model[record.id] = record
      return "a save of “\(record.id)” after “\(event)”"
    }
  }
}
