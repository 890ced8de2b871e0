import Foundation

// Whole records, for another ledger and of another ledger.
extension MemoryLedgerState {
  mutating func restore(_ records: [DownloadRecord], owner: String, at now: Date) throws -> [Bool] {
    var ids: Set<DownloadID> = []
    let isNew = records.map { entries[$0.id] == nil && ids.insert($0.id).inserted }
    let chosen = zip(records, isNew).filter(\.1).map(\.0)
    let finished = Set(chosen.lazy.filter { $0.phase == .finished }.map(\.id))
    let ranking = rankingToWrite(owner)
    var last = lastGeneration
    let new = chosen.map { record in
      last = record.generation(after: last)
      var record = record.restored(as: last) { finished.contains($0) || isFinished($0) }
      let candidate = record.candidate.withoutSize
      record.rank = ranking.rank(record.rankingContext(host: candidate.host))
      return Entry(record: record, addedBy: owner, candidate: candidate)
    }
    // Before anything is written: what a finished one releases could not be undone.
    let waitsFor = Dictionary(uniqueKeysWithValues: new.map { ($0.record.id, $0.record.waitsFor) })
    try DependencyCycle.check(
      waitsFor.filter { !$0.value.isEmpty }.keys.sorted(), visitsOthers: ids.contains { dependents[$0] != nil }
    ) { waitsFor[$0] ?? entries[$0]?.record.waitsFor ?? [] }
    lastGeneration = last
    for entry in new {
      set(entry)
      if entry.record.phase == .finished { release(by: entry.record.id, at: now) }
    }
    return isNew
  }

  func records(after generation: Int64, limit: Int) -> [DownloadRecord] {
    let later = entries.values.lazy.map(\.record).filter { $0.generation > generation }
    return Array(later.sorted { $0.generation < $1.generation }.prefix(max(0, limit)))
  }
}
