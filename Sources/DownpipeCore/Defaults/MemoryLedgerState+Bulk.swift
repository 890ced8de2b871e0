import Foundation

/// What is done to many records at once.
extension MemoryLedgerState {
  /// The generations of a selection in the order of arrival.
  private func generations(of selection: LedgerSelection) -> [Int64] {
    switch selection {
    case .ids(let ids):
      return Set(ids.compactMap { generations[$0] }).sorted {
        (entries[$0]?.record.arrival ?? 0, $0) < (entries[$1]?.record.arrival ?? 0, $1)
      }
    case .all, .tag:
      var found: [Int64] = []
      arrivals.forEach { key in
        if case .tag(let tag) = selection, entries[key.generation]?.record.request.tags.contains(tag) != true {
          return true
        }
        found.append(key.generation)
        return true
      }
      return found
    }
  }

  mutating func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, owner: String, at now: Date
  ) -> LedgerTransitionResult {
    var result = LedgerTransitionResult(ids: [], count: 0)
    for generation in generations(of: selection) {
      guard let record = entries[generation]?.record, record.owner == nil, Lifecycle.next(record.phase, event) != nil
      else { continue }
      update(generation) { entry in
        entry.record.apply(event)
        entry.record.updatedAt = now
        if event != .becameDue { entry.addedBy = owner }
      }
      result.count += 1
      if result.ids.count < 10_000 { result.ids.append(record.id) }
    }
    return result
  }

  mutating func remove(_ selection: LedgerSelection, limit: Int, owner: String) -> [DownloadRecord] {
    var chosen: [Int64] = []
    for generation in generations(of: selection) where chosen.count < limit {
      guard let record = entries[generation]?.record, record.owner == nil || record.owner == owner else { continue }
      chosen.append(generation)
    }
    return chosen.compactMap { delete($0) }
  }

  mutating func renewLeases(of owner: String, until lease: Date) {
    for generation in active where entries[generation]?.record.owner == owner {
      setLease(lease, of: generation)
    }
  }

  mutating func reclaim(at now: Date) -> Int {
    let open = openOwners
    return giveBack(at: now) { entry in
      entry.lease.map { $0 <= now } ?? true || entry.record.owner.map { !open.contains($0) } ?? true
    }
  }

  /// Makes active records wait again, with what they have on disk.
  @discardableResult
  mutating func giveBack(at now: Date? = nil, where belongs: (Entry) -> Bool) -> Int {
    let lost = active.filter { entries[$0].map(belongs) ?? false }
    for generation in lost {
      update(generation) { entry in
        entry.record.apply(.leaseLost)
        entry.record.updatedAt = now ?? entry.record.updatedAt
        entry.lease = nil
      }
    }
    return lost.count
  }
}
