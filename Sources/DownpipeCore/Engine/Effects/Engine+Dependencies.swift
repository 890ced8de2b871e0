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
}
