@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// The rules about filters, and about updates of many records.
extension LedgerConformance {
  /// An error that only the change throws.
  private struct Refusal: Error {}

  private struct Sample {
    var id: DownloadID
    var host: String
    var intent: Intent
    var tags: Set<String> = []
    var phase = DownloadState.Phase.waiting
    var notBefore: Date?
  }

  private static let samples = [
    Sample(id: "a", host: "one.example", intent: .silent, tags: ["t"]),
    Sample(id: "b", host: "one.example", intent: .prefetch),
    Sample(id: "c", host: "two.example", intent: .silent, tags: ["t"], phase: .paused),
    Sample(id: "d", host: "one.example:8080", intent: .silent, phase: .failed),
    Sample(id: "e", host: "two.example", intent: .prefetch, tags: ["t", "u"], phase: .finished),
    Sample(id: "f", host: "one.example", intent: .silent, notBefore: time(50)),
    Sample(id: "g", host: "two.example", intent: .silent, tags: ["t"], phase: .transferring),
    Sample(id: "h", host: "one.example", intent: .silent, tags: ["u"], phase: .cancelled),
    Sample(id: "i", host: "one.example", intent: .silent, tags: ["t"], phase: .paused),
  ]

  private static let filters: [DownloadFilter] = {
    let phases: [Set<DownloadState.Phase>?] = [nil, [.waiting], [.paused, .failed], [.transferring], []]
    return phases.flatMap { phases in
      [nil, "t"].flatMap { tag in
        [nil, "one.example", "ONE.example:8080", "none.example"].flatMap { host in
          [nil, .silent].map { DownloadFilter(phases: phases, tag: tag, host: host, intent: $0) }
        }
      }
    } + idFilters
  }()

  /// Filters that name downloads, some of which do not exist.
  private static let idFilters: [DownloadFilter] = [
    .ids([]), .ids(["a"]), .ids(["none"]), .ids(["a", "c", "e", "f", "g", "h", "none"]),
    DownloadFilter(phases: [.waiting, .finished], ids: ["a", "c", "e", "f"]),
    DownloadFilter(tag: "t", ids: ["a", "b"]),
    DownloadFilter(host: "one.example", ids: ["a", "c", "f", "i"]),
    DownloadFilter(phases: [.paused], tag: "t", host: "two.example", intent: .silent, ids: ["c", "i"]),
  ]

  /// A choice of filters for rules that need a ledger for each.
  private static let fewFilters: [DownloadFilter] = [
    .host("one.example"), .intent(.silent), .phases([.waiting]), .phases([.paused, .failed]), .host("none.example"),
    DownloadFilter(tag: "t", intent: .silent), DownloadFilter(phases: [.waiting], host: "one.example"),
    DownloadFilter(phases: [.waiting, .paused], tag: "t", host: "one.example", intent: .silent),
    .ids(["a", "c", "e", "f", "none"]), DownloadFilter(tag: "t", ids: ["a", "b", "i"]),
  ]

  /// A ledger with the samples, added through two stores. Their priorities are their numbers.
  private func sampled() async throws -> (ledger: any Ledger, store: any LedgerStore) {
    let (ledger, store) = try await opened()
    let other = try await ledger.open()
    let additions = try Self.samples.enumerated().map { index, sample in
      LedgerAddition(
        request: try DownloadRequest(
          "https://\(sample.host)/file", id: sample.id, priority: Priority(Int16(index)), intent: sample.intent,
          tags: sample.tags), arrival: Int64(index))
    }
    _ = try await store.add(additions.filter { $0.arrival % 2 == 0 }, at: Self.start)
    _ = try await other.add(additions.filter { $0.arrival % 2 == 1 }, at: Self.start)
    let leased = try await store.lease(
      LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
        let sample = Self.samples[Int(candidate.priority.rawValue)]
        return sample.phase != .waiting || sample.notBefore != nil ? .take : .skip
      })
    let saves = leased.map { record in
      var record = record
      let sample = Self.samples[Int(record.arrival)]
      record.phase = sample.phase
      record.notBefore = sample.notBefore
      record.checkpoint.ranges = ByteRangeSet([0..<record.arrival + 1])
      return LedgerSave(record, [.state, .checkpoint])
    }
    try expectEqual(leased.count, 7, "the number of downloads leased")
    let exchange = try await store.exchange(saves, leasing: nil, at: Self.start)
    try expect(exchange.saved.allSatisfy { $0 }, "the owner's save was refused")
    return (ledger, store)
  }

  /// The samples that match a filter, found without the filter's own function.
  private static func matching(_ filter: DownloadFilter) -> [Sample] {
    samples.filter { sample in
      if let phases = filter.phases, !phases.contains(sample.phase) { return false }
      if let tag = filter.tag, !sample.tags.contains(tag) { return false }
      if let host = filter.host, sample.host != host { return false }
      if let intent = filter.intent, sample.intent != intent { return false }
      if let ids = filter.ids, !ids.contains(sample.id) { return false }
      return true
    }
  }

  func checkFilters(_ report: ConformanceReport) async {
    await report.check("filter-queries", "queries, counts and totals select by phase, tag, host, intent and id") {
      let (_, store) = try await sampled()
      for filter in Self.filters {
        let expected = Self.matching(filter)
        for order in [DownloadQuery.Order.arrival, .rank, .latestChange] {
          let found = try await store.records(DownloadQuery(filter, order: order))
          try expectEqual(found.map(\.id).sorted(), expected.map(\.id), "the downloads by \(order) for \(filter)")
        }
        let page = try await store.records(DownloadQuery(filter, limit: 2, offset: 1))
        try expectEqual(page.map(\.id), expected.dropFirst().prefix(2).map(\.id), "a page for \(filter)")
        let counts = Dictionary(grouping: expected, by: \.phase).mapValues(\.count)
        try expectEqual(
          try await store.counts(filter).filter { $0.value != 0 }, counts, "the counts for \(filter)")
        let records = try await store.records(DownloadQuery()).filter { found in expected.contains { $0.id == found.id }
        }
        let received = records.reduce(0) { sum, record in
          // Neither a finished download without an artifact's size nor a cancelled one changes this sum.
          sum + (record.phase == .cancelled ? 0 : record.checkpoint.ranges.byteCount)
        }
        let totals = try await store.totals(filter)
        try expectEqual(totals.counts.filter { $0.value != 0 }, counts, "the counts of the totals for \(filter)")
        try expectEqual(totals.received, received, "the received bytes for \(filter)")
      }
    }
    await report.check("filter-transitions", "a transition applies to exactly the records that match a filter") {
      for (index, filter) in Self.fewFilters.enumerated() {
        try await checkTransition(filter, index % 2 == 0 ? .cancel : .resume)
      }
    }
    await report.check("filter-removals", "remove deletes exactly the records that match a filter") {
      let (_, store) = try await sampled()
      for filter in Self.filters {
        let asked = Mutex<[DownloadID]>([])
        let count = try await store.remove(.matching(filter)) { record in
          asked.withLock { $0.append(record.id) }
          return false
        }
        try expectEqual(count, 0, "the number of records removed, although none was chosen,")
        try expectEqual(
          asked.withLock { $0 }.sorted(), Self.matching(filter).map(\.id), "the records that \(filter) selects")
      }
      let filter = DownloadFilter(phases: [.waiting, .paused], host: "one.example", intent: .silent)
      try expectEqual(try await store.remove(.matching(filter)).count, 3, "the number of records removed")
      try expectEqual(
        try await store.records(DownloadQuery()).map(\.id), ["b", "c", "d", "e", "g", "h"], "the records left")
    }
  }

  private func checkTransition(_ filter: DownloadFilter, _ event: Lifecycle.Event) async throws {
    let (_, store) = try await sampled()
    let what = "“\(event)” of \(filter)"
    let expected = Self.matching(filter).filter { sample in
      !sample.phase.isActive && Lifecycle.next(sample.phase, event) != nil
    }.map(\.id)
    let before = try await store.records(DownloadQuery())
    let result = try await store.transition(.matching(filter), event, at: Self.time(1))
    try expectEqual(result.ids.sorted(), expected, "the records moved by \(what)")
    try expectEqual(result.count, expected.count, "the number of records moved by \(what)")
    let after = before.map { record in
      var record = record
      if expected.contains(record.id), record.apply(event) { record.updatedAt = Self.time(1) }
      return record
    }
    try expectEqual(try await store.records(DownloadQuery()), after, "the records after \(what)")
    try expectEqual(
      try await store.counts(.all).filter { $0.value != 0 },
      Dictionary(grouping: after, by: \.phase).mapValues(\.count), "the counts after \(what)")
    try await store.close()
  }

  // MARK: Updating many

  func checkUpdatingMany(_ report: ConformanceReport) async {
    await report.check("update-all-selects", "an update of a selection changes exactly the selected records") {
      let (_, store) = try await sampled()
      for filter in Self.filters {
        let expected = Self.matching(filter).map(\.id)
        let before = try await store.records(DownloadQuery())
        let asked = Mutex<[DownloadID]>([])
        // The new attributes match no filter, so that a selection that is not judged first is noticed.
        let result = try await store.update(.matching(filter), at: Self.time(1)) { record in
          asked.withLock { $0.append(record.id) }
          record.request.tags = ["new"]
          record.request.intent = Intent("new")
          record.request.metadata = ["by": "filter"]
        }
        try expectEqual(asked.withLock { $0 }.sorted(), expected, "the records passed to the change for \(filter)")
        try expectEqual(result.ids.sorted(), expected, "the ids of the records changed for \(filter)")
        try expectEqual(result.count, expected.count, "the number of records changed for \(filter)")
        let after = before.map { record in
          var record = record
          guard expected.contains(record.id) else { return record }
          record.added = record.request
          record.request.tags = ["new"]
          record.request.intent = Intent("new")
          record.request.metadata = ["by": "filter"]
          record.updatedAt = Self.time(1)
          return record
        }
        try expectEqual(try await store.records(DownloadQuery()), after, "the records after an update of \(filter)")
        try expectEqual(
          try await store.counts(.tag("new")).values.reduce(0, +), expected.count, "the number with the new tag")
        let old = Dictionary(before.map { ($0.id, $0.request) }) { $1 }
        let restored = try await store.update(.all, at: Self.start) { record in
          record.request = old[record.id] ?? record.request
          record.added = nil
        }
        try expectEqual(restored.count, expected.count, "the number of records changed back")
      }
    }
    await report.check("update-all-ids", "an update of ids calls the change once for each record that exists") {
      let (ledger, store) = try await filled(["a", "b", "c"])
      let second = try await ledger.open()
      _ = try await second.leased(["b"])
      let result = try await store.update(.ids(["b", "none", "a", "b"]), at: Self.time(1)) {
        $0.request.priority = $0.request.priority == .normal ? .high : .low
      }
      try expectEqual(Set(result.ids), ["a", "b"], "the records changed")
      try expectEqual(result.count, 2, "the number of records changed")
      try expectEqual(try await store.known("b").request.priority, .high, "the priority of a record of another owner")
      try expectEqual(try await store.known("b").owner, second.owner, "its owner")
      let unchanged = try await store.update(.all, at: Self.time(2)) { $0.request.priority = $0.request.priority }
      try expectEqual(unchanged, LedgerBulkResult(), "the result of an update without changes")
      try expectEqual(try await store.known("a").updatedAt, Self.time(1), "the time of the last change")
    }
    await report.check("update-all-refused", "an error of the change leaves all records unchanged") {
      let (ledger, store) = try await sampled()
      let before = try await store.records(DownloadQuery())
      let calls = Mutex(0)
      do {
        _ = try await store.update(.all, at: Self.time(1)) { record in
          record.request.priority = .low
          record.request.tags = ["new"]
          let call = calls.withLock { calls in
            calls += 1
            return calls
          }
          if call == 6 { throw Refusal() }
        }
        throw Deviation("nothing was thrown")
      } catch is Refusal {}
      try expectEqual(try await store.records(DownloadQuery()), before, "the records")
      try expectEqual(try await store.counts(.tag("new")).values.reduce(0, +), 0, "the number with the new tag")
      try expectEqual(try await store.counts(.tag("t")).values.reduce(0, +), 5, "the number with the old tag")
      // Neither the queue nor another store has seen the change.
      let second = try await ledger.open()
      try expectEqual(try await second.records(DownloadQuery()), before, "the records that another store reads")
      let leased = try await second.lease(LeaseRequest(now: Self.time(1), until: Self.time(60)) { _ in .take })
      try expectEqual(leased.map(\.id), ["a", "b"], "the downloads leased")
      try expectEqual(leased.map(\.request.priority.rawValue), [0, 1], "the priorities of the downloads leased")
    }
    await report.check("update-all-ranks", "an update of a selection ranks the downloads again") {
      let (_, store) = try await filled(["a", "b", "c", "d"])
      try await store.rank(by: Ranking(name: "test") { Rank().descending($0.priority).ascending($0.arrival) })
      // The order has been read before it changes.
      _ = try await store.lease(LeaseRequest(now: Self.start, until: Self.time(60)) { _ in .stop })
      _ = try await store.update(.ids(["b", "d"]), at: Self.time(1)) { $0.request.priority = .high }
      try expectEqual(try await store.leased(at: Self.time(1)).map(\.id), ["b", "d", "a", "c"], "the downloads leased")
    }
    await report.check("update-all-many", "an update changes any number of records and returns at most 10,000 ids") {
      let (_, store) = try await opened()
      _ = try await store.add(
        try (0..<10_050).map { try Self.addition(DownloadID("\($0)"), order: $0) }, at: Self.start)
      let result = try await store.update(.all, at: Self.time(1)) { $0.request.tags = ["new"] }
      try expectEqual(result.count, 10_050, "the number of records changed")
      try expectEqual(Set(result.ids).count, 10_000, "the number of ids returned")
      try expectEqual(try await store.counts(.tag("new"))[.waiting] ?? 0, 10_050, "the number with the new tag")
    }
  }
}
