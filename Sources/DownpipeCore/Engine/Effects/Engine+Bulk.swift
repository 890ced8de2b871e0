internal import Foundation

// Commands for many downloads.
//
// A filter is judged once, in the turn that begins the command: the ledger changes the matching downloads
// that no owner holds in one transaction, and the matching runs are stopped. Nothing is leased in between. What follows
// concerns only the downloads of these runs, so a download that matches later, such as one that a stopped run or a free
// slot has put into the phase of the filter, is not affected.
extension Engine {
  /// Applies a command to the downloads that match a filter.
  /// - Returns: The number of downloads that have changed.
  func commandAll(
    _ event: Lifecycle.Event, stopping reason: StopReason? = nil, to phase: DownloadState.Phase,
    _ filter: DownloadFilter
  ) async throws -> Int {
    try checkOpen()
    var (count, needsSweep) = (0, false)
    try await takeTurns(for: filter) { engine, number, selection, runs in
      try await engine.carryOut(event, on: selection, stopping: runs, reason, by: number)
    } end: { turn, runs in
      count += turn.idle.count
      if event == .cancel, turn.idle.count > turn.idle.ids.count { needsSweep = true }
      for run in runs where !turn.contested.contains(run.id) { try await run.waitForEndUnlessCancelled() }
      // The first ones are for earlier commands to end, others have ended for another reason.
      let rest = runs.filter { turn.contested.contains($0.id) || !$0.hasBeenStopped(to: phase) }.map(\.id)
      count += runs.count - rest.count
      return rest
    }
    if needsSweep { try await removePartials(ofCancelled: filter) }
    context.mailbox.wake()
    return count
  }

  /// What one turn of a command for many downloads has done.
  private struct BulkTurn: Sendable {
    /// What has changed of the downloads that do not run.
    let idle: LedgerBulkResult
    /// The downloads with runs that earlier commands have not finished with: this command takes another turn after them.
    let contested: Set<DownloadID>
  }

  /// Applies an event in a turn, and stops runs.
  ///
  /// - Returns: Also the runs that the command waits for: all that it stops, those that have ended but are not saved, and
  ///   those that earlier commands concern.
  private func carryOut(
    _ event: Lifecycle.Event, on selection: LedgerSelection, stopping runs: [Run], _ reason: StopReason?,
    by number: Int
  ) async throws -> (BulkTurn, [Run]) {
    let contested = Set(contested(runs, by: number).map(\.id))
    let awaited = runs.filter { reason != nil || !$0.read(\.phase.isActive) || contested.contains($0.id) }
    // The ledger comes first: if it fails, no run is stopped.
    let result = try await transition(state.slots.idle(in: selection), event)
    if let reason { for run in awaited where !contested.contains(run.id) { run.stop(reason) } }
    return (BulkTurn(idle: result, contested: contested), awaited)
  }

  /// The runs that earlier commands have not finished with.
  private func contested(_ runs: [Run], by number: Int) -> [Run] {
    runs.filter { state.commands.last(for: $0.id, before: number) != nil }
  }

  /// Deletes the partials of any number of cancelled downloads, a page at a time.
  private func removePartials(ofCancelled filter: DownloadFilter) async throws {
    var cancelled = filter
    cancelled.phases = [.cancelled]
    // The ledger hands out all keys at once. Pages by offset would leave out downloads when others are restarted, and
    // each would cost more than the one before.
    let removals = RemovedDownloads()
    _ = try await store.remove(.matching(cancelled)) { [location = context.storage.location] record in
      if record.belongs(to: location) { removals.note(record) }
      return false
    }
    for page in removals.taken().pages {
      try await context.mailbox.perform { await $0.removePartials(ofCancelled: page.keys.map(\.id)) }
    }
  }

  // MARK: Changing requests

  /// Changes the requests of the downloads that match a filter, in one transaction of the ledger; those that earlier
  /// commands have not finished with are changed after these, in another.
  /// - Returns: The number of downloads that have changed.
  func updateAll(
    _ filter: DownloadFilter, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Int {
    try checkOpen()
    var count = 0
    try await takeTurns(for: filter) { engine, number, selection, runs in
      try await engine.rankOnce()
      let contested = engine.contested(runs, by: number)
      return (try await engine.changeAll(selection, except: Set(contested.map(\.id)), change), contested)
    } end: { changed, contested in
      count += changed
      return contested.map(\.id)
    }
    return count
  }

  private func changeAll(
    _ selection: LedgerSelection, except contested: Set<DownloadID>,
    _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Int {
    let (pipeline, location) = (pipeline, context.storage.location)
    let before = state.slots.runs.mapValues { $0.read { $0.request } }
    let result = try await store.update(selection, at: time.date) { record in
      guard record.belongs(to: location), !contested.contains(record.id) else { return }
      let destination = record.request.destination
      try record.changeRequest(change, checkedBy: pipeline)
      // Runs that begin to publish would have to be waited for, one by one.
      guard record.request.destination == destination else {
        throw DownloadError(
          .invalidRequest, "“\(record.id)”: the destinations of many downloads cannot be changed together: update each")
      }
    }
    // Some may have been released before their due times; the turn looks at them after this command.
    if result.count > 0 { state.waits.mayHaveDelayed = true }
    noteChange(of: result)
    // The result has a bounded number of ids; there are few runs.
    for record in (try? await store.records(of: Array(before.keys))) ?? [] {
      guard let run = state.slots.runs[record.id] else { continue }
      let old = run.read { $0.request }
      decide { state, _ in state.takeOver(record, since: before[record.id]) }
      if hub.isWatched(run.id), run.read({ $0.request }) != old { run.announcePresentState() }
    }
    return result.count
  }

  // MARK: Suspending

  /// Stops all runs, whose downloads wait again, and starts no download until ``unsuspend()`` is called.
  func suspend() async {
    state.mode.isSuspended = true
    state.mode.suspensions += 1
    let number = state.mode.suspensions
    // At once, although the ledger may not answer. A run that a lease in progress begins is stopped when it begins.
    for run in state.slots.runs.values { run.stop(.suspend) }
    let runs = try? await context.mailbox.perform { engine -> [Run] in
      // A later call wins.
      engine.state.mode.suspensions == number ? Array(engine.state.slots.runs.values) : []
    }
    for run in runs ?? [] { try? await run.waitForEndUnlessCancelled() }
  }

  func unsuspend() async {
    state.mode.suspensions += 1
    let number = state.mode.suspensions
    if !state.mode.isRanked {
      // The downloader was suspended from the start, so the ranking and interrupted renames have to be done now.
      do { try await rankOnce() } catch {
        state.outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
      }
      state.mode.mustFinishRenaming = true
    }
    // A later call wins.
    guard state.mode.suspensions == number else { return }
    state.mode.isSuspended = false
    state.mode.mayLease = true
    state.reasons.mayHaveChanged = true
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

  /// Deletes partials that are still orphans. Done in a turn, so that none of their downloads can start meanwhile.
  func remove(_ orphans: [StoredPartial]) async throws -> Int {
    try checkOpen()
    return try await context.mailbox.perform { engine in
      let idle = orphans.filter { engine.state.slots.runs[$0.key.id]?.key != $0.key }
      return try await engine.context.storage.remove(idle, unknownTo: engine.store)
    }
  }
}
