// Deleting the file or partial of a download, whose record stays as `cancelled`.
extension Engine {
  nonisolated func discard(_ id: DownloadID) async throws -> Bool {
    try await context.mailbox.call(for: [id], stopping: .cancel) { stopped in
      { state, _ in state.discard(id, after: stopped.map { [$0] } ?? []) }
    }
  }
}

extension EngineState {
  /// - Parameter ended: The runs that the command has stopped or waited for.
  fileprivate mutating func discard(_ id: DownloadID, after ended: [Run]) -> NextAction<Bool> {
    if let run = slots.runs[id] {
      stop(run, .cancel)
      return .wait(for: [run]) { state, _ in state.discard(id, after: ended + [run]) }
    }
    return .job { context, changes in
      let wasDiscarded = try await context.discard(id, &changes)
      return { _, _ in .over(wasDiscarded || ended.contains { $0.hasBeenStopped(to: .cancelled) }) }
    }
  }
}

extension EngineContext {
  /// Discards a download that does not run. Its file is deleted in the same turn, so that no later command brings a new one
  /// to its place meanwhile.
  fileprivate func discard(_ id: DownloadID, _ changes: inout Changes) async throws -> Bool {
    let record = await renamed(try await existing(id), &changes)
    guard record.phase == .finished else {
      let wasCancelled = try await transition(.ids([id]), .cancel, &changes).count > 0
      return try await removeEarlierFile(of: id, &changes) || wasCancelled
    }
    // The ledger changes first, because the file of a finished download must exist.
    guard try await transition(.ids([id]), .discard, &changes).count > 0 else { return false }
    do { if let stored = record.steps.artifact { try await storage.remove(stored) } } catch {
      // For a later call, which tries again.
      _ = try? await store.update(id, at: time.date) { [stored = record.steps.artifact] in
        if $0.phase == .cancelled { $0.earlierArtifact = stored }
      }
      changes.ids.append(id)
      throw error
    }
    return true
  }

  /// Deletes the files of earlier fetches, which a download has that was cancelled while it was fetched again.
  /// - Returns: `false` if there is none.
  private func removeEarlierFile(of id: DownloadID, _ changes: inout Changes) async throws -> Bool {
    guard let record = try await record(id), record.phase == .cancelled, record.earlierArtifact != nil else {
      return false
    }
    for stored in record.artifactsToDelete { try await storage.remove(stored) }
    _ = try await store.update(id, at: time.date) {
      if $0.phase == .cancelled { ($0.earlierArtifact, $0.leftArtifacts) = (nil, []) }
    }
    changes.ids.append(id)
    return true
  }
}
