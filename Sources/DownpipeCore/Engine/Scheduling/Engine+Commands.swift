internal import Foundation

// What users command of one download: pause, resume, restart, cancel, remove. A run is stopped at once; what is decided
// over the ledger is decided by the loop, where nothing is being leased.
extension Engine {
  // MARK: One download

  /// Applies a command to a download, whether it runs or not.
  ///
  /// - Parameters:
  ///   - event: what is commanded.
  ///   - reason: what a run is told; `nil` for commands that mean nothing to a run.
  ///   - phase: the phase in which such a run ends, and which is all that is commanded; `nil` for commands that only
  ///     begin by ending the run.
  /// - Returns: whether it meant anything in the phase the download was in.
  func command(
    _ event: Lifecycle.Event, stopping reason: StopReason? = nil, to phase: DownloadState.Phase? = nil, _ id: DownloadID
  ) async throws -> Bool {
    try checkOpen()
    // At once; then again by the loop, for a run that begins in between.
    if let reason { slots.runs[id]?.stop(reason) }
    return try await takeTurns { run in
      // Something else may have ended it first.
      guard let phase, run.read({ $0.phase }) == phase else { return nil }
      return phase != .waiting || run.stopReason == reason ? true : nil
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
    let result = try await store.transition(.ids([id]), event, at: time.date)
    if result.count > 0 { await carriedOut(event, on: result.ids) }
    return result.count > 0
  }

  /// Removes what a cancelled download has on disk, and tells those who watch.
  func carriedOut(_ event: Lifecycle.Event, on ids: [DownloadID]) async {
    for id in ids where event == .cancel || hub.isWatched(id) {
      guard let record = try? await store.record(id), slots.runs[id] == nil else { continue }
      if event == .cancel, record.phase == .cancelled { try? await context.storage.removePartial(record.partialKey) }
      publish(record)
    }
  }

  /// Removes a download: its work is ended first.
  func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    try checkOpen()
    slots.runs[id]?.stop(.remove)
    var wasRemoved = false
    let records: [DownloadRecord] = try await takeTurns { run in
      wasRemoved = wasRemoved || run.wasRemoved
      return nil
    } _: { engine in
      if let run = engine.slots.runs[id] {
        run.stop(.remove)
        return .wait(for: run)
      }
      return .over(try await engine.forget(id))
    }
    try await cleanUp(after: records, deletingFiles: deletingFile)
    return wasRemoved || !records.isEmpty
  }

  /// Deletes what there is of a download, and keeps its record as that of a cancelled one.
  func discard(_ id: DownloadID) async throws -> Bool {
    let discarded = try await context.mailbox.perform { engine -> Artifact? in
      guard engine.slots.runs[id] == nil, let record = try await engine.record(id) else { return nil }
      guard case .finished(let artifact) = engine.state(of: await engine.renamed(record)) else { return nil }
      // The ledger first: what it lists as finished is there.
      return try await engine.transition(id, .discard) ? artifact : nil
    }
    guard let discarded else { return try await command(.cancel, stopping: .cancel, to: .cancelled, id) }
    try await context.storage.remove(discarded)
    return true
  }

  /// Removes a record, a damaged one too, if it belongs here.
  private func forget(_ id: DownloadID) async throws -> [DownloadRecord] {
    let isDamaged = try await store.damaged().contains { $0.id == id }
    if !isDamaged, try await record(id) == nil { return [] }
    return try await store.remove(.ids([id]), limit: 1)
  }

  func cleanUp(after records: [DownloadRecord], deletingFiles: Bool) async throws {
    var failure: (any Error)?
    for record in records {
      let state = state(of: record)
      do {
        try await context.storage.removePartial(record.partialKey)
        if deletingFiles, case .finished(let artifact) = state { try await context.storage.remove(artifact) }
      } catch {
        failure = failure ?? error
      }
      reasons.forget(record.id)
      hub.publish(removalOf: record.request)
      context.furthest.forget(record.id)
    }
    if let failure { throw failure }
  }
}

extension DownloadError {
  static func unknownDownload(_ id: DownloadID) -> DownloadError {
    DownloadError(.invalidRequest, "there is no download “\(id)”")
  }
}
