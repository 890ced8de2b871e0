import Foundation

// Downloads that wait for others.
extension MemoryLedgerState {
  /// Whether a download has finished; `false` if there is none.
  func isFinished(_ id: DownloadID) -> Bool { record(id)?.phase == .finished }

  /// Whether a download is active or may be leased, now or at its due time.
  var isBusy: Bool { entries.values.contains { $0.record.phase.isActive || $0.record.isQueued } }

  /// Notes what a changed record waits for, and releases the downloads that waited for it if it has finished.
  mutating func noteDependencies(of record: DownloadRecord, since old: DownloadRecord?) {
    let before = old?.waitsFor ?? []
    if record.waitsFor != before {
      setDependent(record.id, of: before.subtracting(record.waitsFor), to: false)
      setDependent(record.id, of: record.waitsFor.subtracting(before), to: true)
    }
    if let old, record.phase == .finished, old.phase != .finished { release(by: record.id, at: record.updatedAt) }
  }

  /// Adds a download to the dependents of others, or removes it.
  mutating func setDependent(_ id: DownloadID, of others: Set<DownloadID>, to isSet: Bool) {
    for other in others {
      if isSet {
        dependents[other, default: []].insert(id)
      } else {
        dependents[other]?.remove(id)
        if dependents[other]?.isEmpty == true { dependents[other] = nil }
      }
    }
  }

  /// Releases the downloads that waited for a finished one.
  mutating func release(by finished: DownloadID, at now: Date) {
    for id in dependents[finished] ?? [] {
      guard var entry = entries[id] else { continue }
      entry.record.waitsFor.remove(finished)
      entry.record.updatedAt = now
      if entry.record.isQueued, entry.record.notBefore != nil { hasReleasedDelayed = true }
      set(entry)
    }
  }

  /// Makes a change, and undoes it if downloads would then wait for each other.
  ///
  /// - Parameter requests: The requests of the downloads that the change may write.
  mutating func keepingOrder<Result>(
    of requests: [DownloadRequest], _ change: (inout Self) -> Result
  ) throws -> Result {
    guard requests.contains(where: { !$0.after.isEmpty }) else { return change(&self) }
    let before = requests.map { (id: $0.id, entry: entries[$0.id]) }
    let areNeeded = before.contains { dependents[$0.id] != nil }
    let result = change(&self)
    let changed = before.filter { id, entry in
      record(id)?.waitsFor.isSubset(of: entry?.record.waitsFor ?? []) == false
    }
    do {
      try DependencyCycle.check(changed.map(\.id), visitsOthers: areNeeded) { entries[$0]?.record.waitsFor ?? [] }
    } catch {
      for (id, entry) in before {
        if let entry { set(entry) } else { forget(id) }
      }
      throw error
    }
    return result
  }
}
