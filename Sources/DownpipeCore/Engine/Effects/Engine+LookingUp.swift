// Looking up what downloads do.
extension Engine {
  func status(of id: DownloadID) async throws -> DownloadStatus? {
    try checkOpen()
    takeRules()
    if let run = state.slots.runs[id] { return run.status }
    guard let record = try await context.shownRecord(id) else { return nil }
    return present(await context.withDependencies([record])).first
  }

  func statuses(of ids: [DownloadID]) async throws -> [DownloadID: DownloadStatus] {
    try checkOpen()
    takeRules()
    let location = context.locationForReading
    let records = try await store.records(of: ids).filter { $0.belongs(to: location) }
    let statuses = present(await context.withDependencies(records))
    return Dictionary(statuses.map { ($0.id, $0) }) { $1 }
  }

  func statuses(_ query: DownloadQuery) async throws -> [DownloadStatus] {
    try checkOpen()
    takeRules()
    var query = query
    query.filter = shown(query.filter)
    return present(await context.withDependencies(try await store.records(query)))
  }

  /// The statuses of records, or of their runs if they have started since the records were read.
  private func present(_ found: FoundRecords) -> [DownloadStatus] { state.statuses(of: found, at: instant) }

  /// Selects the downloads that are shown, unless the filter names a location.
  private func shown(_ filter: DownloadFilter) -> DownloadFilter {
    var filter = filter
    filter.location = filter.location ?? context.locationForReading
    return filter
  }

  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try checkOpen()
    return try await store.counts(shown(filter))
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    try checkOpen()
    let filter = shown(filter)
    var totals = try await store.totals(filter)
    for saved in try await store.records(of: state.slots.runs(matching: filter).map(\.id)) where filter.matches(saved) {
      guard let run = state.slots.runs[saved.id], saved.phase == .transferring else { continue }
      let record = run.record
      guard record.phase == .transferring else { continue }
      let progress = run.progress
      totals.replace(saved, by: record, received: progress.received)
      if let speed = progress.bytesPerSecond { totals.bytesPerSecond = (totals.bytesPerSecond ?? 0) + speed }
    }
    return totals
  }
}
