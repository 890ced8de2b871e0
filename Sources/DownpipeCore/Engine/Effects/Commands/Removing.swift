internal import Synchronization

// Removing downloads.
//
// The records are removed and the removals are published in the same turn. Published files are deleted before the command
// ends: what was added later may have to be published at the same place. Only if a command for many removes many at once,
// their files are deleted afterwards, a few in a turn; those of ids that were added again meanwhile are left. Partials
// have a generation, so they need no turn; only that of a run that was stopped by the removal is deleted in the turn that
// ends the run, before the caller goes on.
extension Engine {
  /// The number of files that are deleted in one turn.
  fileprivate static let filesInTurn = 100

  /// Removes a download after stopping its run.
  nonisolated func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    let removal = try await context.mailbox.call(for: [id], stopping: .remove) { stopped in
      { state, _ in state.remove(id, deletingFile: deletingFile, after: stopped.map { [$0] } ?? []) }
    }
    var failure = removal.failure
    do { try await deleteFiles(of: removal.records) } catch { failure = failure ?? error }
    if let failure { throw failure }
    return removal.hasRemoved
  }

  /// Removes the downloads that match a filter.
  /// - Returns: The number of downloads that were removed.
  nonisolated func removeAll(_ filter: DownloadFilter, deletingFiles: Bool) async throws -> Int {
    let removals = Removals()
    async let end = removals.note { [context] in
      try await context.mailbox.call(for: nil) { _ in
        { state, _ in state.remove(.matching(filter), deletingFiles: deletingFiles, noting: removals) }
      }
    }
    // The files of most are deleted before runs have ended, and also after an error.
    try? await removals.firstTurn.wait()
    do { try await deleteFiles(of: removals.records.taken()) } catch { removals.note(error) }
    if let error = await end { removals.note(error) }
    do { try await deleteFiles(of: removals.records.taken()) } catch { removals.note(error) }
    return try removals.count
  }

  /// Deletes the partials and the files of removed downloads.
  /// - Throws: The first error, after everything else has been deleted.
  private nonisolated func deleteFiles(of removed: RemovedDownloads.Summary) async throws {
    var failure: (any Error)?
    for page in removed.pages {
      do { try await context.storage.removePartials(page.keys) } catch { failure = failure ?? error }
      let artifacts = page.artifacts
      for start in stride(from: 0, to: artifacts.count, by: Self.filesInTurn) {
        let batch = Array(artifacts[start..<min(start + Self.filesInTurn, artifacts.count)])
        do { try await context.mailbox.perform { context, _ in try await context.delete(batch) } } catch {
          failure = failure ?? error
        }
      }
    }
    if let failure { throw failure }
  }
}

/// What a command has removed.
struct Removal: Sendable {
  var records = RemovedDownloads.Summary()
  /// The runs that the command has stopped or waited for.
  var ended: [Run] = []
  /// Why a file was not deleted.
  var failure: (any Error)?

  /// Whether there was a download to remove.
  var hasRemoved: Bool { records.count > 0 || ended.contains(where: \.wasRemoved) }
}

/// What a command for many downloads has removed so far.
private final class Removals: Sendable {
  /// Of these, files have to be deleted.
  let records = RemovedDownloads()
  /// Complete when the downloads are removed that do not run, or the command has failed.
  let firstTurn = Completion()
  private let state = Mutex<(count: Int, failure: (any Error)?)>((0, nil))

  /// The number of downloads that were removed.
  /// - Throws: The first error that was noted.
  var count: Int {
    get throws {
      let (count, failure) = state.withLock { $0 }
      if let failure { throw failure }
      return count
    }
  }

  func note(_ error: any Error) { state.withLock { $0.failure = $0.failure ?? error } }

  /// Notes downloads that were removed.
  func note(_ count: Int) { state.withLock { $0.count += count } }

  /// - Returns: What the command throws.
  func note(_ command: () async throws -> Void) async -> (any Error)? {
    defer { firstTurn.complete() }
    do { try await command() } catch { return error }
    return nil
  }
}

extension EngineState {
  /// - Parameter ended: The runs that the command has stopped or waited for.
  mutating func remove(_ id: DownloadID, deletingFile: Bool, after ended: [Run]) -> NextAction<Removal> {
    let gone = ended.last(where: \.wasRemoved)
    // What has the id with another key was added later.
    if let run = slots.runs[id], gone.map({ $0.key == run.key }) ?? true {
      stop(run, .remove)
      return .wait(for: [run]) { state, _ in state.remove(id, deletingFile: deletingFile, after: ended + [run]) }
    }
    if let gone {
      let left = deletingFile ? gone.leftArtifacts.map { (id: id, artifact: $0) } : []
      guard !left.isEmpty else { return .over(Removal(ended: ended)) }
      return .job { context, _ in
        var removal = Removal(ended: ended)
        do { try await context.delete(left) } catch { removal.failure = error }
        return { [removal] _, _ in .over(removal) }
      }
    }
    // Its outcome may have been on its way to the ledger: then its record was removed before this turn.
    return .job { [lost = lostRemovals[id]] context, changes in
      var removal = Removal(ended: ended)
      removal.records = try await context.forget(id, deletingFile: deletingFile, knowing: lost, &changes)
      removal.failure = await context.deleteFiles(of: &removal.records, after: ended, withArtifacts: deletingFile)
      return { [removal] state, _ in
        state.lostRemovals[id] = nil
        return .over(removal)
      }
    }
  }

  /// Removes the downloads of a selection that do not run, and stops the others.
  /// - Parameter ended: Those that the command has waited for.
  fileprivate mutating func remove(
    _ selection: LedgerSelection, deletingFiles: Bool, after ended: [Run] = [], noting removals: Removals
  ) -> NextAction<Void> {
    let runs = slots.runs(in: selection)
    let running = Set(slots.runs.keys)
    let lost = if case .ids(let ids) = selection { ids.compactMap { lostRemovals[$0] } } else { [DownloadRecord]() }
    let mustFinishRenaming = deletingFiles && mode.mustFinishRenaming
    if mustFinishRenaming { mode.mustFinishRenaming = false }
    return .job { context, changes in
      // The files may be at their new places without the ledger's knowledge.
      if mustFinishRenaming { await context.finishRenaming(&changes) }
      let location = try context.storage.location
      // Downloads that other owners run, and downloads at other locations, are not removed.
      var removed = try await context.forget(selection, deletingFiles: deletingFiles, knowing: lost, &changes) {
        record in
        !running.contains(record.id) && record.belongs(to: location)
      }
      removals.note(removed.count)
      if !ended.isEmpty || removed.fileCount <= Engine.filesInTurn {
        let failure = await context.deleteFiles(of: &removed, after: ended, withArtifacts: deletingFiles)
        if let failure { removals.note(failure) }
      }
      removals.records.add(removed)
      return { state, _ in
        removals.firstTurn.complete()
        for record in lost { state.lostRemovals[record.id] = nil }
        for run in runs { state.stop(run, .remove) }
        state.commands.narrow(state.turn.command, to: Set(runs.map(\.id)))
        return .wait(for: runs) { _, _ in
          let gone = runs.filter(\.wasRemoved)
          removals.note(gone.count)
          // These have ended for another reason.
          let rest = runs.filter { !$0.wasRemoved }.map(\.id)
          let left = deletingFiles ? gone.flatMap { run in run.leftArtifacts.map { (run.id, $0) } } : []
          return .job { context, _ in
            do { try await context.delete(left) } catch { removals.note(error) }
            return { state, _ in
              guard !rest.isEmpty else { return .over(()) }
              return state.remove(.ids(rest.sorted()), deletingFiles: deletingFiles, after: runs, noting: removals)
            }
          }
        }
      }
    }
  }
}

extension EngineContext {
  /// Removes a record of this location, or a damaged record.
  ///
  /// - Parameter lost: The record, if an earlier removal has failed.
  fileprivate func forget(
    _ id: DownloadID, deletingFile: Bool, knowing lost: DownloadRecord?, _ changes: inout Changes
  ) async throws -> RemovedDownloads.Summary {
    do {
      if let record = try await record(id) {
        // The file may be at its new place without the ledger's knowledge.
        if deletingFile { _ = await renamed(record, &changes) }
      } else if lost == nil {
        return RemovedDownloads.Summary()
      }
    } catch {
      // A damaged record cannot be read, but it can be removed. All records are read only to find out.
      guard try await store.damaged().contains(where: { $0.id == id }) else { throw error }
    }
    return try await forget(.ids([id]), deletingFiles: deletingFile, knowing: lost.map { [$0] } ?? [], &changes)
  }

  /// Removes the record of a run that was stopped by a removal. Its command deletes the published file.
  /// - Parameter lost: Its record, if an earlier removal has failed.
  /// - Returns: `false` if the ledger has failed. The caller tries again, and the record may be removed all the same.
  func removeRecord(of run: Run, knowing lost: DownloadRecord?, _ changes: inout Changes) async -> Bool {
    let removed = try? await forget(
      .ids([run.id]), deletingFiles: false, knowing: lost.map { [$0] } ?? [], &changes)
    if let removed, removed.count > 0 {
      run.wasRemoved = true
      for page in removed.pages { try? await storage.removePartials(page.keys) }
    } else {
      // The download stays cancelled.
      run.announce(state: .cancelled)
    }
    return removed != nil
  }

  /// Removes records in a turn.
  /// - Parameter lost: The records of downloads whose removal has failed.
  fileprivate func forget(
    _ selection: LedgerSelection, deletingFiles: Bool, knowing lost: [DownloadRecord],
    _ changes: inout Changes, where isRemoved: @escaping @Sendable (DownloadRecord) -> Bool = { _ in true }
  ) async throws -> RemovedDownloads.Summary {
    let removals = RemovedDownloads(of: hub, withFiles: deletingFiles)
    // The ledger may have removed them all the same.
    for record in lost where try await store.record(record.id) == nil { removals.note(record) }
    do {
      _ = try await store.remove(selection) { record in
        guard isRemoved(record) else { return false }
        removals.note(record)
        return true
      }
    } catch {
      changes.mustLookAgain = true
      changes.maybeGone.append(removals.taken())
      throw error
    }
    let removed = removals.taken()
    changes.removed.append(removed)
    return removed
  }

  /// Deletes the artifacts of removed downloads, and their partials if they have run: the caller may not wait any longer.
  ///
  /// - Parameter ended: The runs that the command has stopped or waited for.
  /// - Returns: The first error, after everything else has been deleted.
  fileprivate func deleteFiles(
    of removed: inout RemovedDownloads.Summary, after ended: [Run], withArtifacts: Bool
  ) async -> (any Error)? {
    var failure: (any Error)?
    var files = removed.takeFiles()
    if !ended.isEmpty {
      let keys = removed.pages.flatMap(\.keys)
      // A folder is not noted in the record while it is fetched again.
      let left = ended.filter { run in
        keys.contains { $0.id == run.id && $0.generation == run.key.generation } && !files.contains { $0.id == run.id }
      }
      if withArtifacts { files += left.flatMap { run in run.leftArtifacts.map { (run.id, $0) } } }
      for page in removed.takePages() {
        do { try await storage.removePartials(page.keys) } catch { failure = failure ?? error }
      }
    }
    do { try await delete(files) } catch { failure = failure ?? error }
    return failure
  }

  /// Deletes the files of removed downloads. Done in a turn, so that no download starts and publishes meanwhile.
  /// - Throws: The first error, after everything else has been deleted.
  fileprivate func delete(_ artifacts: [(id: DownloadID, artifact: StoredArtifact)]) async throws {
    guard !artifacts.isEmpty else { return }
    // If an id was added again, the file at the path may be the new one.
    let known = Set(try await store.records(of: artifacts.map(\.id)).map(\.id))
    var failure: (any Error)?
    for (id, stored) in artifacts where !known.contains(id) {
      do { try await storage.remove(stored) } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }
}
