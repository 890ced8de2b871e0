internal import Foundation

// Downloads that wait for others: the ledger holds them back and releases them; the engine says what they wait for.
extension Engine {
  /// Reads what the given downloads wait for. Reads nothing unless one of them waits for another download.
  func dependencies(of records: [DownloadRecord]) async -> Dependencies {
    let ids = records.reduce(into: Set<DownloadID>()) { if $1.phase == .waiting { $0.formUnion($1.waitsFor) } }
    guard !ids.isEmpty else { return .unread }
    return Dependencies(try? await store.records(of: ids.sorted()))
  }

  /// The artifacts that no longer exist, of finished downloads that are added together with a download that waits for
  /// them.
  ///
  /// They have to be known before the addition: otherwise the download that waits would start although the file is
  /// downloaded again.
  func lostDependencies(among requests: [DownloadRequest]) async throws -> [DownloadID: StoredArtifact] {
    let needed = requests.reduce(into: Set<DownloadID>()) { $0.formUnion($1.after) }
    let ids = requests.map(\.id).filter(needed.contains)
    guard !ids.isEmpty else { return [:] }
    var lost: [DownloadID: StoredArtifact] = [:]
    for record in try await store.records(of: ids) where record.phase == .finished {
      lost[record.id] = await lostArtifact(of: record)
    }
    return lost
  }

  /// Adds downloads, those with a lost artifact first: a download that is added with them then waits for them.
  func addLostFirst(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    guard additions.contains(where: { $0.lost != nil }) else { return try await store.add(additions, at: now) }
    let (lost, others) = (
      additions.indices.filter { additions[$0].lost != nil }, additions.indices.filter { additions[$0].lost == nil }
    )
    let order = lost + others
    let outcomes = try await store.add(order.map { additions[$0] }, at: now)
    return zip(order, outcomes).sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Publishes the downloads whose reason to wait has changed with the state of a dependency.
  func tellDependents() async {
    let ids = reasons.takeStale().filter { slots.runs[$0] == nil }
    guard !ids.isEmpty else { return }
    guard let (records, dependencies) = await readForPublishing(ids) else { return noteUnpublished(ids) }
    forgetReasons(of: ids, except: records)
    for record in records where slots.runs[record.id] == nil {
      if case .waiting(let reason) = state(of: record, dependencies), reasons.told[record.id]?.reason == reason {
        continue
      }
      publish(record, dependencies)
    }
  }

  /// Reads records together with what they wait for. They are read again if a run has ended in between, or one of them has
  /// changed; those that keep changing are left out: an older state must not be published after a newer one.
  func readForPublishing(_ ids: [DownloadID]) async -> (records: [DownloadRecord], dependencies: Dependencies)? {
    slots.beginReading(ids)
    defer { slots.endReading(ids) }
    var start = 0
    var found: (records: [DownloadRecord], dependencies: Dependencies)?
    for _ in 0..<3 {
      let endings = slots.endings
      // Changes before the reading are in what is read.
      start = slots.changes
      guard let records = try? await store.records(of: ids) else { return nil }
      found = (records, await dependencies(of: records))
      if records.contains(where: { slots.hasChanged($0.id, since: start) }) { continue }
      if slots.endings == endings || records.allSatisfy(\.waitsFor.isEmpty) { break }
    }
    found?.records.removeAll { slots.hasChanged($0.id, since: start) }
    return found
  }
}
