// Removing downloads.
//
// The records are removed and the removals are published in the same turn. Files are deleted afterwards. An id can be
// added again meanwhile, so what happens after that turn must not concern the download that has the id then. Partials
// have a generation, so they need no turn; only that of a run that was stopped by the removal is deleted in the turn that
// ends the run, before the caller goes on.
extension Engine {
  /// The number of files that are deleted in one turn.
  private static let filesInTurn = 100

  /// Removes a download after stopping its run.
  func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    try checkOpen()
    // Its outcome may be on its way to the ledger: then its record is removed before the first turn of this command.
    var ended: [Run] = []
    let removed: RemovedDownloads.Summary = try await takeTurns(for: id, stopping: .remove) { run in
      ended.append(run)
      // What has the id then was added later.
      return run.wasRemoved ? RemovedDownloads.Summary() : nil
    } _: { engine in
      if let run = engine.state.slots.runs[id] {
        run.stop(.remove)
        return .wait(for: run)
      }
      return .over(try await engine.forget(id, deletingFile: deletingFile))
    }
    try await deleteFiles(of: removed)
    let wasRemoved = ended.contains(where: \.wasRemoved)
    let left = deletingFile ? ended.last(where: \.wasRemoved)?.leftArtifact : nil
    if let left { try await context.storage.remove(try context.storage.artifact(from: left)) }
    return wasRemoved || removed.count > 0
  }

  /// Removes a record of this location, or a damaged record.
  private func forget(_ id: DownloadID, deletingFile: Bool) async throws -> RemovedDownloads.Summary {
    do {
      guard let record = try await record(id) else {
        guard lostRemovals[id] != nil else { return RemovedDownloads.Summary() }
        return try await forget(.ids([id]), deletingFiles: deletingFile)
      }
      // The file may be at its new place without the ledger's knowledge.
      if deletingFile { _ = await renamed(record) }
    } catch {
      // A damaged record cannot be read, but it can be removed. All records are read only to find out.
      guard try await store.damaged().contains(where: { $0.id == id }) else { throw error }
    }
    return try await forget(.ids([id]), deletingFiles: deletingFile)
  }

  /// Removes the downloads that match a filter.
  /// - Returns: The number of downloads that were removed.
  func removeAll(_ filter: DownloadFilter, deletingFiles: Bool) async throws -> Int {
    try checkOpen()
    var count = 0
    var failure: (any Error)?
    try await takeTurns(for: filter) { engine, _, selection, runs in
      // The files may be at their new places without the ledger's knowledge.
      if deletingFiles, engine.state.mode.mustFinishRenaming { await engine.finishRenaming() }
      let (running, location) = (Set(engine.state.slots.runs.keys), engine.context.storage.location)
      // Downloads that other owners run, and downloads at other locations, are not removed.
      let removed = try await engine.forget(selection, deletingFiles: deletingFiles) { record in
        !running.contains(record.id) && record.belongs(to: location)
      }
      for run in runs { run.stop(.remove) }
      return (removed, runs)
    } end: { removed, runs in
      count += removed.count
      do { try await deleteFiles(of: removed) } catch { failure = failure ?? error }
      for run in runs { try await run.waitForEndUnlessCancelled() }
      for left in runs.filter(\.wasRemoved).compactMap(\.leftArtifact) where deletingFiles {
        do {
          try await context.storage.remove(try context.storage.artifact(from: left))
        } catch {
          failure = failure ?? error
        }
      }
      // These have ended for another reason.
      let rest = runs.filter { !$0.wasRemoved }.map(\.id)
      count += runs.count - rest.count
      return rest
    }
    if let failure { throw failure }
    return count
  }

  /// Removes the record of a run that was stopped by a removal. This is part of a turn, so it deletes no published file,
  /// for which it would have to wait for itself.
  func removeRecord(of run: Run) async {
    do {
      let removed = try await forget(.ids([run.id]), deletingFiles: false)
      // Otherwise the download stays cancelled.
      guard removed.count > 0 else { return run.announce(state: .cancelled) }
      run.wasRemoved = true
      try? await deleteFiles(of: removed)
    } catch {
      // The caller tries again. The ledger may have removed the record all the same.
      lostRemovals[run.id] = run.record
      run.announce(state: .cancelled)
    }
  }

  /// The records of downloads whose removal failed, although the ledger has removed them.
  private func lostRecords(of selection: LedgerSelection) async throws -> [DownloadRecord] {
    guard case .ids(let ids) = selection, !lostRemovals.isEmpty else { return [] }
    var lost: [DownloadRecord] = []
    for id in ids {
      guard let record = lostRemovals[id] else { continue }
      if try await store.record(id) == nil { lost.append(record) }
      lostRemovals[id] = nil
    }
    return lost
  }

  /// Removes records in a turn, and publishes the removals.
  private func forget(
    _ selection: LedgerSelection, deletingFiles: Bool,
    where isRemoved: @escaping @Sendable (DownloadRecord) -> Bool = { _ in true }
  ) async throws -> RemovedDownloads.Summary {
    let removals = RemovedDownloads(of: hub, withFiles: deletingFiles)
    for record in try await lostRecords(of: selection) { removals.note(record) }
    do {
      _ = try await store.remove(selection) { record in
        guard isRemoved(record) else { return false }
        removals.note(record)
        return true
      }
    } catch {
      // The ledger may have removed them all the same.
      let lost = removals.taken()
      for page in lost.pages { state.waits.forget(page.keys.map(\.id)) }
      for request in lost.watched { state.unpublished.note(request.id, request) }
      waitForLedger()
      throw error
    }
    let removed = removals.taken()
    for page in removed.pages {
      let ids = page.keys.map(\.id)
      for id in ids {
        state.reasons.forget(id)
        context.furthest.forget(id)
      }
      state.reasons.noteChange(of: ids)
      state.unpublished.forget(ids)
      state.waits.forget(ids)
    }
    for request in removed.watched { hub.publish(removalOf: request) }
    if removed.watched.count < removed.count { hub.publishIncomplete() }
    return removed
  }

  /// Deletes the partials and the files of removed downloads.
  /// - Throws: The first error, after everything else has been deleted.
  private func deleteFiles(of removed: RemovedDownloads.Summary) async throws {
    var failure: (any Error)?
    for page in removed.pages {
      for key in page.keys {
        do { try await context.storage.removePartial(key) } catch { failure = failure ?? error }
      }
      let artifacts = page.artifacts
      for start in stride(from: 0, to: artifacts.count, by: Self.filesInTurn) {
        let batch = Array(artifacts[start..<min(start + Self.filesInTurn, artifacts.count)])
        do {
          try await context.mailbox.perform { try await $0.delete(batch) }
        } catch {
          failure = failure ?? error
        }
      }
    }
    if let failure { throw failure }
  }

  /// Deletes the files of removed downloads. Done in a turn, so that no download starts and publishes meanwhile.
  private func delete(_ artifacts: [(id: DownloadID, artifact: StoredArtifact)]) async throws {
    // If an id was added again, the file at the path may be the new one.
    let known = Set(try await store.records(of: artifacts.map(\.id)).map(\.id))
    var failure: (any Error)?
    for (id, stored) in artifacts where !known.contains(id) {
      let artifact = context.storage.shownArtifact(from: stored)
      do { try await context.storage.remove(artifact) } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }
}
