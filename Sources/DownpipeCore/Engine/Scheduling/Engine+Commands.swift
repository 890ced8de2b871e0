internal import Foundation

// Commands for one download: pause, resume, restart, cancel. A run is stopped at once. Decisions that need the
// ledger are made in the loop, while no download is being leased.
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
    // The run is stopped at once; the loop stops a run that begins in between.
    return try await takeTurns(for: id, stopping: reason) { run in
      phase.map { run.hasBeenStopped(to: $0) } == true ? true : nil
    } _: { engine in
      if let run = engine.slots.runs[id] {
        if let reason { run.stop(reason) }
        if reason != nil || !run.read({ $0.phase.isActive }) { return .wait(for: run) }
      }
      return .over(try await engine.transition(id, event))
    }
  }

  func transition(_ id: DownloadID, _ event: Lifecycle.Event) async throws -> Bool {
    guard try await record(id) != nil else { throw DownloadError.unknownDownload(id) }
    let result: LedgerBulkResult
    do {
      result = try await store.transition(.ids([id]), event, at: time.date)
    } catch {
      // It may have taken effect all the same.
      noteUnpublished(CollectionOfOne(id))
      throw error
    }
    if result.count > 0 { await carriedOut(event, on: result.ids) }
    return result.count > 0
  }

  /// Deletes the partials of cancelled downloads, and publishes the new states.
  func carriedOut(_ event: Lifecycle.Event, on ids: [DownloadID]) async {
    noteBulkChange(of: ids)
    waits.forget(ids)
    for id in ids where event == .cancel || hub.isWatched(id) {
      slots.beginReading([id])
      defer { slots.endReading([id]) }
      let start = slots.changes
      let record: DownloadRecord
      do {
        guard let found = try await store.record(id) else { continue }
        record = found
      } catch {
        noteUnpublished(CollectionOfOne(id))
        continue
      }
      let dependencies = await dependencies(of: [record])
      guard slots.runs[id] == nil else { continue }
      if event == .cancel, record.phase == .cancelled { try? await context.storage.removePartial(record.partialKey) }
      if slots.runs[id] == nil, !slots.hasChanged(id, since: start) { publish(record, dependencies) }
    }
  }

  /// Deletes the file of an earlier fetch, after the download that fetched it again was cancelled.
  private func removeEarlierFile(of id: DownloadID) async throws {
    let earlier = try await context.mailbox.perform { engine -> Artifact? in
      guard let record = try await engine.record(id), record.phase == .cancelled else { return nil }
      return record.earlierArtifact.map { engine.artifact($0) }
    }
    if let earlier { try await context.storage.remove(earlier) }
  }

  /// Deletes the file or partial of a download, and keeps its record as `cancelled`.
  func discard(_ id: DownloadID) async throws -> Bool {
    let discarded = try await context.mailbox.perform { engine -> Artifact? in
      guard engine.slots.runs[id] == nil, let record = try await engine.record(id) else { return nil }
      guard case .finished(let artifact) = engine.state(of: await engine.renamed(record)) else { return nil }
      // The ledger changes first, because the file of a finished download must exist.
      return try await engine.transition(id, .discard) ? artifact : nil
    }
    guard let discarded else {
      guard try await command(.cancel, stopping: .cancel, to: .cancelled, id) else { return false }
      try await removeEarlierFile(of: id)
      return true
    }
    try await context.storage.remove(discarded)
    return true
  }
}

extension DownloadError {
  static func unknownDownload(_ id: DownloadID) -> DownloadError {
    DownloadError(.invalidRequest, "there is no download “\(id)”")
  }
}
