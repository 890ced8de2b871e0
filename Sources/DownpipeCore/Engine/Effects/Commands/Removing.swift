internal import Synchronization

// Removing downloads.
//
// The records go in one transaction, which also writes what they leave on disk into the ledger. The command deletes that
// before it ends, on an errand: what was added later may have to be published at the same place. What it could not delete,
// because the process has ended, is deleted when a downloader of the same storage starts.
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
  /// The numbers of what they have left.
  var deletions: [ClosedRange<Int64>] = []

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
      let unsettled = try await context.remove(idle, except: running, onErrand, &removal, &changes)
      return { [removal] state, _ in
        for run in runs { state.stop(run, .remove) }
        let rest = Set(runs.map(\.id) + unsettled)
        if case .matching = selection { state.commands.narrow(state.turn.command, to: rest) }
        return .wait(for: runs) { state, _ in
          guard !rest.isEmpty else { return removal.deleting() }
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

  /// Begins to delete what downloads have left that were removed in processes that have ended.
  mutating func tidy() {
    guard !mode.isStopping else { return }
    begin(
      Errand(ids: []) { context, _ in
        await context.tidy()
        return nil
      })
  }
}

extension Removal {
  /// Deletes what the downloads have left.
  fileprivate func deleting() -> NextAction<Int> {
    guard !deletions.isEmpty else { return .over(count) }
    return .errand(for: []) { context, _ in
      var failure: (any Error)?
      for numbers in deletions {
        do { try await context.delete(numbers) } catch { failure = failure ?? error }
        context.deletions.withLock { _ = $0.remove(numbers.lowerBound) }
      }
      if let failure { throw failure }
      return { _, _ in .over(count) }
    }
  }
}

extension EngineContext {
  /// Removes records of this location in a turn, but for those of downloads that other owners run.
  /// - Returns: The downloads that are not removed yet, because errands come first.
  fileprivate func remove(
    _ selection: LedgerSelection, except running: Set<DownloadID>, _ busy: Set<DownloadID>, _ removal: inout Removal,
    _ changes: inout Changes
  ) async throws -> [DownloadID] {
    if case .ids(let ids) = selection, ids.isEmpty { return [] }
    var attempts: [RemovedDownloads] = []
    let result: LedgerRemoval
    do {
      let location = try storage.location
      result = try await change { [removal] number in
        let removed = RemovedDownloads(of: hub)
        attempts.append(removed)
        return try await store.remove(
          selection, number: number,
          leaving: { record in
            guard !running.contains(record.id), record.belongs(to: location) else { return nil }
            let mustWait = busy.contains(record.id) || (removal.deletesFiles && record.isBeingRenamed)
            if mustWait, !removal.settled.contains(record.id) {
              removed.noteUnsettled(record.id)
              return nil
            }
            removed.note(record)
            return LedgerDeletion(record, removal.artifacts(of: record), at: location)
          })
      }
    } catch {
      changes.mustLookAgain = true
      changes.ids += removal.ended.map(\.id)
      throw error
    }
    let removed = (result.isGivenAgain ? attempts.first : attempts.last)?.summary ?? RemovedDownloads.Summary()
    // What is not removed of those that were stopped is told, too.
    let told = removed.ids + removed.unsettled
    changes.ids += Set(removal.ended.map(\.id)).subtracting(told).sorted()
    removal.count += result.count
    if let numbers = result.deletions {
      removal.deletions.append(numbers)
      deletions.withLock { _ = $0.insert(numbers.lowerBound) }
    }
    changes.removed.append(removed)
    return removed.unsettled
  }

  /// Deletes what removed downloads have left, a page at a time. What cannot be deleted is tried again by the next start.
  /// - Parameter sparesClaimed: Whether files stay that other downloads have by now.
  /// - Throws: The first error, after everything else has been deleted, and `.shutDown`.
  fileprivate func delete(_ numbers: ClosedRange<Int64>, sparingClaimed sparesClaimed: Bool = false) async throws {
    var (failure, first): ((any Error)?, Int64) = (nil, numbers.lowerBound)
    while first <= numbers.upperBound {
      let page = try await store.deletions(at: storage.location, in: first...numbers.upperBound, limit: Self.page)
      guard let last = page.last else { break }
      let withFiles = page.filter { !$0.artifacts.isEmpty }
      let claimed =
        sparesClaimed ? try await paths(claimedAmong: Set(withFiles.flatMap(\.artifacts).compactMap(\.path))) : []
      let ids = Set(withFiles.map(\.id))
      onErrand.begin(ids)
      defer { onErrand.end(ids) }
      // If an id was added again, the file at the path may be the new one. From now on it waits.
      let known = ids.isEmpty ? [] : Set(try await store.records(of: ids.sorted()).map(\.id))
      var deleted: [Int64] = []
      for left in page {
        do {
          try await storage.removePartials(left.partialKeys)
          for stored in left.artifacts where !known.contains(left.id) && stored.path.map(claimed.contains) != true {
            try await storage.remove(stored)
          }
          deleted.append(left.number)
        } catch { failure = failure ?? error }
      }
      try await store.forget(deletions: deleted)
      first = last.number + 1
      if page.count == Self.page, stopsErrands.load(ordering: .relaxed) { throw DownloadError.shutDown }
    }
    if let failure { throw failure }
  }

  /// Deletes what downloads have left that were removed in processes that have ended.
  fileprivate func tidy() async {
    let first = deletions.withLock { $0.min() } ?? .max
    try? await delete(.min...first - 1, sparingClaimed: true)
  }
}

extension DownloadRecord {
  /// Whether the file of a finished download is being renamed, or was when a process has ended.
  var isBeingRenamed: Bool { phase == .finished && steps.note != nil }
}
