internal import Foundation

// Commands for one download: pause, resume, restart, cancel. A run is stopped at once. Decisions that need the
// ledger are made in turns, in which no download is being leased.
extension Engine {
  // MARK: One download

  /// Applies a command to a download, whether or not it runs.
  ///
  /// - Parameters:
  ///   - event: The event to apply to the download.
  ///   - reason: The reason to stop a run; `nil` for commands that do not affect a run.
  ///   - phase: The phase after the run if stopping it completes the command; `nil` if the event has to be applied
  ///     after the run.
  /// - Returns: Whether the event was legal in the download's phase.
  func command(
    _ event: Lifecycle.Event, stopping reason: StopReason? = nil, to phase: DownloadState.Phase? = nil, _ id: DownloadID
  ) async throws -> Bool {
    try checkOpen()
    // The run is stopped at once; the turn stops a run that begins in between.
    return try await takeTurns(for: id, stopping: reason) { run in
      phase.map { run.hasBeenStopped(to: $0) } == true ? true : nil
    } _: { engine in
      if let run = engine.state.slots.runs[id] {
        if let reason { run.stop(reason) }
        if reason != nil || !run.read({ $0.phase.isActive }) { return .wait(for: run) }
      }
      return .over(try await engine.transition(id, event))
    }
  }

  func transition(_ id: DownloadID, _ event: Lifecycle.Event) async throws -> Bool {
    guard try await record(id) != nil else { throw DownloadError.unknownDownload(id) }
    return try await transition(.ids([id]), event).count > 0
  }

  /// Applies an event to downloads that do not run, in a turn.
  func transition(_ selection: LedgerSelection, _ event: Lifecycle.Event) async throws -> LedgerBulkResult {
    let result: LedgerBulkResult
    do {
      result = try await store.transition(selection, event, at: time.date)
    } catch {
      // It may have taken effect all the same.
      noteUncertain(selection)
      throw error
    }
    noteChange(of: result)
    state.waits.forget(result.ids)
    if event == .cancel { await removePartials(ofCancelled: result.ids) }
    return result
  }

  /// Deletes the partials of downloads, in a turn, if they are cancelled and have no run.
  func removePartials(ofCancelled ids: [DownloadID]) async {
    for start in stride(from: 0, to: ids.count, by: Self.page) {
      let page = Array(ids[start..<min(start + Self.page, ids.count)])
      guard let records = try? await store.records(of: page) else { continue }
      for record in records where record.phase == .cancelled && state.slots.runs[record.id] == nil {
        try? await context.storage.removePartial(record.partialKey)
      }
    }
  }

  // MARK: Discarding

  /// Deletes the file or partial of a download, and keeps its record as `cancelled`.
  func discard(_ id: DownloadID) async throws -> Bool {
    try checkOpen()
    var wasCancelled = false
    let wasDiscarded: Bool = try await takeTurns(for: id, stopping: .cancel) { run in
      if run.hasBeenStopped(to: .cancelled) { wasCancelled = true }
      return nil
    } _: { engine in
      if let run = engine.state.slots.runs[id] {
        run.stop(.cancel)
        return .wait(for: run)
      }
      return .over(try await engine.discardInTurn(id))
    }
    return wasDiscarded || wasCancelled
  }

  /// Discards a download that does not run. Its file is deleted in the same turn, so that no later command brings a new one
  /// to its place meanwhile.
  private func discardInTurn(_ id: DownloadID) async throws -> Bool {
    guard var record = try await record(id) else { throw DownloadError.unknownDownload(id) }
    record = await renamed(record)
    guard case .finished(let artifact) = state(of: record) else {
      let wasCancelled = try await transition(id, .cancel)
      return try await removeEarlierFile(of: id) || wasCancelled
    }
    // The ledger changes first, because the file of a finished download must exist.
    guard try await transition(id, .discard) else { return false }
    do { try await context.storage.remove(artifact) } catch {
      // For a later call, which tries again.
      _ = try? await store.update(id, at: time.date) { [stored = record.steps.artifact] in
        if $0.phase == .cancelled { $0.earlierArtifact = stored }
      }
      noteChange(of: CollectionOfOne(id))
      throw error
    }
    return true
  }

  /// Deletes the file of an earlier fetch, which a download has that was cancelled while it was fetched again.
  /// - Returns: `false` if there is none.
  private func removeEarlierFile(of id: DownloadID) async throws -> Bool {
    guard let record = try await record(id), record.phase == .cancelled, let earlier = record.earlierArtifact else {
      return false
    }
    try await context.storage.remove(context.storage.shownArtifact(from: earlier))
    _ = try await store.update(id, at: time.date) { if $0.phase == .cancelled { $0.earlierArtifact = nil } }
    noteChange(of: CollectionOfOne(id))
    return true
  }
}

extension DownloadError {
  static func unknownDownload(_ id: DownloadID) -> DownloadError {
    DownloadError(.invalidRequest, "there is no download “\(id)”")
  }
}
