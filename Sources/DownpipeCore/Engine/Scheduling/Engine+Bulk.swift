internal import Foundation

// Commands for many downloads.
extension Engine {
  /// The number of records to read at a time.
  private static let page = 1000

  /// Applies a command to every download, or to those with a tag. Waiting downloads change in one transaction of the ledger.
  /// - Returns: The number of downloads that have changed.
  func commandAll(
    _ event: Lifecycle.Event, stopping reason: StopReason? = nil, to phase: DownloadState.Phase, tag: String?
  ) async throws -> Int {
    try checkOpen()
    let selection = tag.map(LedgerSelection.tag) ?? .all
    var count = 0
    var ids: [DownloadID] = []
    while true {
      // Waiting and running downloads are handled in one turn of the loop, so that nothing is leased in between. A run
      // that ends for another reason waits again, and is handled in the next turn.
      let (idle, runs) = try await context.mailbox.perform { engine in
        let result = try await engine.store.transition(selection, event, at: engine.time.date)
        let runs = reason == nil ? [] : engine.slots.runs(tag: tag)
        if let reason { for run in runs { run.stop(reason) } }
        return (result, runs)
      }
      count += idle.count
      ids += idle.ids
      if idle.count > idle.ids.count { hub.publishIncomplete() }
      if runs.isEmpty { break }
      for run in runs { try await run.endUnlessCancelled() }
      count += runs.count { $0.read { $0.phase } == phase }
    }
    let moved = ids
    // Done by the loop, so that none of the downloads can start meanwhile.
    _ = try await context.mailbox.perform { await $0.carriedOut(event, on: moved) }
    if event == .cancel, count > ids.count { try await removePartials(ofCancelledWith: tag) }
    context.mailbox.wake()
    return count
  }

  /// Deletes the partials of any number of cancelled downloads, a page at a time.
  private func removePartials(ofCancelledWith tag: String?) async throws {
    var query = DownloadQuery(phases: [.cancelled], tag: tag, location: context.storage.location, limit: Self.page)
    while true {
      let count = try await context.mailbox.perform { [query] engine in
        let records = try await engine.store.records(query)
        for record in records where engine.slots.runs[record.id] == nil {
          try? await engine.context.storage.removePartial(record.partialKey)
        }
        return records.count
      }
      guard count == Self.page else { return }
      query.offset += Self.page
    }
  }

  /// Removes every download, or those with a tag.
  /// - Returns: The number of downloads that were removed.
  func removeAll(tag: String?, deletingFiles: Bool) async throws -> Int {
    try checkOpen()
    // Downloads that other owners run, and downloads at other locations, are not removed.
    var page = DownloadQuery(tag: tag, location: context.storage.location, limit: Self.page)
    var count = 0
    var failure: (any Error)?
    while true {
      let (ids, listed, removed, runs) = try await context.mailbox.perform { [page] engine in
        let runs = engine.slots.runs(tag: tag)
        for run in runs { run.stop(.remove) }
        let listed = try await engine.store.records(page).map(\.id)
        let ids = try await listed + engine.damaged(on: page)
        let idle = ids.filter { engine.slots.runs[$0] == nil }
        return (ids, Set(listed), try await engine.store.remove(.ids(idle), limit: idle.count), runs)
      }
      if ids.isEmpty { break }
      count += removed.count
      do { try await cleanUp(after: removed, deletingFiles: deletingFiles) } catch { failure = failure ?? error }
      for run in runs { try await run.endUnlessCancelled() }
      count += runs.count { $0.wasRemoved }
      if runs.isEmpty { page.offset += listed.subtracting(removed.map(\.id)).count }
    }
    if let failure { throw failure }
    return count
  }

  /// The damaged records, which are part of the first page unless a tag is given.
  private func damaged(on page: DownloadQuery) async throws -> [DownloadID] {
    page.tag == nil && page.offset == 0 ? try await store.damaged().map(\.id) : []
  }

  /// Stops all runs, whose downloads wait again, and starts no download until ``unsuspend()`` is called.
  func suspend() async {
    mode.isSuspended = true
    let runs = try? await context.mailbox.perform { engine in
      for run in engine.slots.runs.values { run.stop(.suspend) }
      return Array(engine.slots.runs.values)
    }
    for run in runs ?? [] { try? await run.endUnlessCancelled() }
  }

  func unsuspend() async {
    if !mode.isRanked {
      // The downloader was suspended from the start, so the ranking and interrupted renames have to be done now.
      do { try await rankOnce() } catch {
        outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
      }
      await finishRenaming()
    }
    mode.isSuspended = false
    mode.mayLease = true
    context.mailbox.wake()
  }

  // MARK: Orphans

  /// The partials that are not in use and that no download of the ledger will resume.
  func orphans() async throws -> [StoredPartial] {
    try checkOpen()
    guard let orphans = try await context.storage.orphans(unknownTo: store) else {
      throw DownloadError(
        .invalidPipeline, "\(context.storage.name) cannot list its partials", stage: context.storage.name)
    }
    return orphans
  }

  /// Deletes partials that are still orphans. Done by the loop, so that none of their downloads can start meanwhile.
  func remove(_ orphans: [StoredPartial]) async throws -> Int {
    try checkOpen()
    return try await context.mailbox.perform { engine in
      let idle = orphans.filter { engine.slots.runs[$0.key.id]?.key != $0.key }
      return try await engine.context.storage.remove(idle, unknownTo: engine.store)
    }
  }
}
