internal import Synchronization

// Removing downloads.
//
// The records go in one transaction, which also writes what they leave on disk into the ledger. An errand deletes that at once,
// and the command waits for its end: what was added later may have to be published at the same place. What it could not
// delete, because the process has ended, is deleted when a downloader of the same storage starts.
extension Engine {
  /// Removes a download after stopping its run.
  nonisolated func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    let count = try await context.mailbox.call(for: [id], stopping: .remove) { stopped in
      { state, _ in
        state.remove(.ids([id]), Removal(deletesFiles: deletingFile, ended: stopped.map { [$0] } ?? []))
      }
    }
    return count > 0
  }

  /// Removes the downloads that match a filter.
  /// - Returns: The number of downloads that were removed.
  nonisolated func removeAll(_ filter: DownloadFilter, deletingFiles: Bool) async throws -> Int {
    try await context.mailbox.call(for: nil) { _ in
      { state, _ in state.remove(.matching(filter), Removal(deletesFiles: deletingFiles)) }
    }
  }
}

/// What a command removes, and has removed so far.
struct Removal: Sendable {
  let deletesFiles: Bool
  /// The runs that the command has stopped or waited for.
  var ended: [Run] = []
  /// The downloads whose errands it has waited for, and whose interrupted renames it has tried to finish: a file may be at its
  /// new place without the ledger's knowledge.
  var settled: Set<DownloadID> = []
  /// The number of removed downloads.
  var count = 0
  /// The ends of the errands that delete what they have left.
  var deletions: [Completion] = []

  /// What removed downloads have left.
  struct Left {
    /// The numbers under which the ledger keeps it.
    let numbers: ClosedRange<Int64>
    /// Downloads that are held (``DownloadsOnErrand``) until their files are deleted. Of many, the others follow page by page.
    var held: Set<DownloadID> = []
  }

  /// The files to delete with a record.
  func artifacts(of record: DownloadRecord) -> [StoredArtifact] {
    guard deletesFiles else { return [] }
    let artifacts = record.artifactsToDelete
    guard artifacts.isEmpty, let run = ended.last(where: { $0.id == record.id }) else { return artifacts }
    // A folder is not noted in the record while it is fetched again.
    return run.key.generation == record.generation ? run.leftArtifacts : []
  }
}

extension EngineState {
  /// Removes the downloads of a selection that do not run, stops the others, and removes them when they have ended.
  mutating func remove(_ selection: LedgerSelection, _ removal: Removal) -> NextAction<Int> {
    let runs = slots.runs(in: selection)
    let idle = slots.idle(in: selection)
    let (running, onErrand) = (Set(slots.runs.keys), Set(errands.ends.keys))
    return .job { context, changes in
      var removal = removal
      // The ledger comes first: if it fails, no run is stopped.
      let (left, unsettled) = try await context.remove(idle, except: running, onErrand, &removal, &changes)
      return { [removal] state, _ in
        var removal = removal
        if let left { removal.deletions.append(state.beginDeleting(left)) }
        for run in runs { state.stop(run, .remove) }
        let rest = Set(runs.map(\.id) + unsettled)
        if case .matching = selection { state.commands.narrow(state.turn.command, to: rest) }
        return .wait(for: runs) { [removal] state, _ in
          guard !rest.isEmpty else { return .over(removal.count, after: removal.deletions) }
          var removal = removal
          removal.ended += runs
          removal.settled.formUnion(unsettled)
          guard !unsettled.isEmpty else { return state.remove(.ids(rest.sorted()), removal) }
          // After their errands.
          return .errand(for: Set(unsettled)) { [removal] context, changes in
            for id in unsettled { await context.finishRenaming(of: id, &changes) }
            return { state, _ in state.remove(.ids(rest.sorted()), removal) }
          }
        }
      }
    }
  }

  /// Begins to delete what removed downloads have left, also if the command fails.
  private mutating func beginDeleting(_ left: Removal.Left) -> Completion {
    let end = Completion()
    begin(
      Errand(ids: []) { context, changes in
        let result = await Result { try await context.delete(left) }
        context.deletions.end(left.numbers.lowerBound)
        if case .failure = result { changes.due.insert(.deletions) }
        end.complete(result)
        return nil
      })
    return end
  }

  /// Begins to delete what downloads have left that were removed in processes that have ended, if that is due. A downloader
  /// that only lists deletes nothing.
  mutating func tidy() {
    guard mode.phase == .running, due.contains(.deletions), context.deletions.begin(Deletions.ofOthers) else { return }
    due.remove(.deletions)
    // What runs have, which the ledger may not know yet. From now on they keep it.
    let places = Set(slots.runs.values.compactMap(\.place).flatMap(\.withFolders))
    begin(
      Errand(ids: []) { context, changes in
        // Otherwise later.
        let isDone = (try? await context.tidy(sparing: places)) ?? false
        if !isDone { changes.due.insert(.deletions) }
        context.deletions.end(Deletions.ofOthers)
        return nil
      })
  }
}

extension EngineContext {
  /// Removes records of this location in a turn, but for those of downloads that other owners run.
  /// - Returns: What they have left, and the downloads that are not removed yet, because errands come first.
  fileprivate func remove(
    _ selection: LedgerSelection, except running: Set<DownloadID>, _ busy: Set<DownloadID>, _ removal: inout Removal,
    _ changes: inout Changes
  ) async throws -> (left: Removal.Left?, unsettled: [DownloadID]) {
    if case .ids(let ids) = selection, ids.isEmpty { return (nil, []) }
    var attempts: [RemovedDownloads] = []
    let result: LedgerRemoval
    do {
      let location = try storage.location
      result = try await change { [removal] number in
        let removed = RemovedDownloads(of: hub)
        attempts.append(removed)
        return try await store.remove(
          selection, number: number,
          leaving: { [deletions] record in
            guard !running.contains(record.id), record.belongs(to: location) else { return nil }
            let mustWait = busy.contains(record.id) || (removal.deletesFiles && record.isBeingRenamed)
            if mustWait, !removal.settled.contains(record.id) {
              removed.noteUnsettled(record.id)
              return nil
            }
            let artifacts = removal.artifacts(of: record)
            removed.note(record, hasFiles: !artifacts.isEmpty, kept: deletions.kept(of: artifacts))
            return LedgerDeletion(record, artifacts, at: location)
          })
      }
    } catch {
      // It may have taken effect.
      changes.mustLookAgain = true
      changes.due.insert(.deletions)
      changes.ids += removal.ended.map(\.id)
      throw error
    }
    let removed = (result.isGivenAgain ? attempts.first : attempts.last)?.summary ?? RemovedDownloads.Summary()
    // What is not removed of those that were stopped is told, too.
    let told = removed.ids + removed.unsettled
    changes.ids += Set(removal.ended.map(\.id)).subtracting(told).sorted()
    removal.count += result.count
    changes.removed.append(removed)
    let left = result.deletions.map { Removal.Left(numbers: $0, held: removed.withFiles) }
    deletions.drop(removed.kept)
    if let left {
      deletions.begin(left.numbers.lowerBound)
      onErrand.begin(left.held)
    }
    return (left, removed.unsettled)
  }

  /// Deletes what removed downloads have left, some at a time. What cannot be deleted is tried again later.
  /// - Parameter spared: What stays beside the files that other downloads have by now, if ended processes have left the rest:
  ///   of commands, also those of other processes, some may still be at work.
  /// - Throws: Errors of the ledger, `.shutDown`, and the first error of a file, after everything else has been deleted.
  fileprivate func delete(_ left: Removal.Left, sparing spared: Set<String>? = nil) async throws {
    var (failure, first): ((any Error)?, Int64) = (nil, left.numbers.lowerBound)
    // If an id is added again, it waits until the file at the path, which may be its own, has been deleted.
    var held = left.held
    defer { onErrand.end(held) }
    while first <= left.numbers.upperBound {
      // Each time that files are spared, all records are read.
      let limit = spared == nil ? Self.page : 10 * Self.page
      let page = try await store.deletions(at: storage.location, in: first...left.numbers.upperBound, limit: limit)
      guard let last = page.last else { break }
      let withFiles = page.filter { !$0.artifacts.isEmpty }
      let late = Set(withFiles.map(\.id)).subtracting(held)
      onErrand.begin(late)
      held.formUnion(late)
      // Of those that were added again before, the file at the path may be the new one.
      let known = late.isEmpty ? [] : Set(try await store.records(of: late.sorted()).map(\.id))
      var stays = spared
      if spared != nil {
        let candidates = Set(withFiles.flatMap(\.artifacts).compactMap(\.path))
        stays?.formUnion(try await paths(claimedAmong: candidates, canStop: true))
      }
      var deleted: [Int64] = []
      for entry in page where entry.isReadable {
        // The disk may have answered after the end of the downloader.
        if areErrandsGivenUp.load(ordering: .relaxed) { break }
        if spared != nil, stopsErrands.load(ordering: .relaxed) { break }
        do {
          let isDone = try await delete(entry, known.contains(entry.id), stays)
          if isDone { deleted.append(entry.number) }
        } catch { failure = failure ?? error }
        if let done = held.remove(entry.id) { onErrand.end([done]) }
      }
      try await store.forget(deletions: deleted)
      if page.count == limit || spared != nil, stopsErrands.load(ordering: .relaxed) { throw DownloadError.shutDown }
      first = last.number + 1
    }
    // Those of ended processes are tried again by the next start.
    if let failure, spared == nil { throw failure }
  }

  /// - Parameters:
  ///   - isKnown: Whether the download was added again, so that its files stay.
  ///   - spared: What stays, if an ended process has left the rest.
  /// - Returns: Whether the ledger may forget it.
  private func delete(_ left: LedgerDeletion, _ isKnown: Bool, _ spared: Set<String>?) async throws -> Bool {
    var isKnown = isKnown
    if !left.artifacts.isEmpty, !isKnown, let record = try await store.record(left.id) {
      // Its run waits, unless it is that of another process.
      isKnown = !record.files.isEmpty || (record.owner ?? store.owner) != store.owner
    }
    if spared != nil, !left.artifacts.isEmpty {
      // The command of another process may have deleted it meanwhile, or will.
      let present = try await store.deletions(at: storage.location, in: left.number...left.number, limit: 1)
      guard !present.isEmpty, !isKnown else { return false }
    }
    try await storage.removePartials(left.partialKeys)
    for stored in left.artifacts where !isKnown {
      if let path = stored.path, spared?.contains(path) == true { continue }
      // One that this storage may not touch is left for another one.
      _ = try storage.artifact(from: stored)
      try await deletions.delete(stored.path) { try await storage.remove(stored) }
    }
    return true
  }

  /// Deletes what downloads have left that were removed in processes that have ended.
  /// - Parameter places: What the runs of this downloader have.
  /// - Returns: Whether that was all: what commands of this downloader delete comes first.
  fileprivate func tidy(sparing places: Set<String>) async throws -> Bool {
    let first = deletions.first
    try await delete(Removal.Left(numbers: .min...first - 1), sparing: places)
    return first == Deletions.ofOthers
  }
}

extension DownloadRecord {
  /// Whether the file of a finished download is being renamed, or was when a process has ended.
  var isBeingRenamed: Bool { phase == .finished && steps.note != nil }
}
