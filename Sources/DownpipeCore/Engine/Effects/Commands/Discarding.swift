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
    // Its file may be at a new place without the ledger's knowledge.
    return afterRenaming(id) { _, _ in
      .job { context, changes in
        let record = try await context.existing(id)
        // The ledger changes first, because the file of a finished download must exist.
        let event: Lifecycle.Event = record.phase == .finished ? .discard : .cancel
        let isChanged = try await context.transition(.ids([id]), event, &changes).count > 0
        let wasStopped = ended.contains { $0.hasBeenStopped(to: .cancelled) }
        guard isChanged || event == .cancel else { return { _, _ in .over(wasStopped) } }
        return { _, _ in
          .errand(for: [id]) { context, changes in
            let isDeleted = try await context.deleteFiles(ofDiscarded: record, &changes)
            return { _, _ in .over(isChanged || isDeleted || wasStopped) }
          }
        }
      }
    }
  }
}

extension EngineContext {
  /// - Parameter record: The record before the download was discarded.
  /// - Returns: Whether files of earlier fetches were deleted.
  fileprivate func deleteFiles(ofDiscarded record: DownloadRecord, _ changes: inout Changes) async throws -> Bool {
    let id = record.id
    guard record.phase == .finished else {
      await deletePartials(ofCancelled: [id])
      return try await removeEarlierFile(of: id, &changes)
    }
    do { if let stored = record.steps.artifact { try await storage.remove(stored) } } catch {
      // For a later call, which tries again.
      _ = try? await store.update(id, at: time.date) { [stored = record.steps.artifact] in
        if $0.phase == .cancelled { $0.earlierArtifact = stored }
      }
      changes.ids.append(id)
      throw error
    }
    return false
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
