import Foundation

// Operations on many records. Each is atomic, because the ledger's lock is held.
extension MemoryLedgerState {
  /// The selected downloads: those that match a filter in order of generation, those with given ids in the given order.
  private func chosen(_ selection: LedgerSelection) -> [DownloadID] {
    switch selection {
    case .matching(let filter): return ids(of: matching(filter))
    case .ids(let ids):
      var known: Set<DownloadID> = []
      return ids.filter { known.insert($0).inserted }
    }
  }

  mutating func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, owner: String, at now: Date
  ) -> LedgerBulkResult {
    let ranking = event == .restart || event == .refresh ? rankingToWrite(owner) : nil
    let moved = update(chosen(selection), at: now) { entry in
      guard entry.record.owner == nil, entry.record.apply(event) else { return false }
      if let ranking { entry.record.rank = ranking.rank(entry.record.rankingContext(host: entry.candidate.host)) }
      if event != .becameDue { entry.addedBy = owner }
      return true
    }
    return LedgerBulkResult(moved)
  }

  mutating func remove(
    _ selection: LedgerSelection, owner: String, leaving choose: (DownloadRecord) -> LedgerDeletion?
  ) -> LedgerRemoval {
    var removal = LedgerRemoval()
    for id in chosen(selection) {
      guard let record = entries[id]?.record, record.owner == nil || record.owner == owner, let left = choose(record)
      else { continue }
      forget(id)
      removal.note(left.isEmpty ? nil : keep(left))
    }
    return removal
  }

  /// Changes the chosen records, or none if a change fails or downloads would wait for each other.
  mutating func update(
    _ selection: LedgerSelection, owner: String, at now: Date, _ change: (inout DownloadRecord) throws -> Void
  ) throws -> LedgerBulkResult {
    let ranking = rankingToWrite(owner)
    let changed = try chosen(selection).compactMap { id -> Entry? in
      guard var entry = entries[id] else { return nil }
      let phase = entry.record.phase
      guard try entry.record.update(by: owner, at: now, ranking: ranking, isFinished: { isFinished($0) }, change)
      else { return nil }
      entry.candidate = entry.record.candidate.withoutSize
      if entry.record.phase != phase { entry.addedBy = owner }
      return entry
    }
    try keepingOrder(of: changed.map(\.record.request)) { state in
      for entry in changed { state.set(entry) }
    }
    return LedgerBulkResult(changed.lazy.map(\.record))
  }
}

extension LedgerBulkResult {
  fileprivate init(_ records: some Collection<DownloadRecord>) {
    self.init(ids: records.prefix(Self.mostIDs).map(\.id), count: records.count)
  }
}
