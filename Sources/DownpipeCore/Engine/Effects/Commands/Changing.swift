internal import Foundation

// Changing requests.
extension Engine {
  /// Changes the request of a download in one transaction of the ledger.
  nonisolated func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try await rankOnce()
    return try await context.mailbox.call(for: [id]) { _ in { state, _ in state.change(id, change) } }
  }
}

extension EngineState {
  /// Changes the request of a download, which may run.
  mutating func change(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) -> NextAction<DownloadStatus> {
    .job { context, _ in
      _ = try await context.existing(id)
      return { state, _ in try state.change(id, change) { state, _ in state.change(id, change) } }
    }
  }

  /// Changes the request of a download of this location.
  /// - Parameter again: Decides when its run has ended, if that comes first.
  mutating func change(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void,
    orAfterTheRun again: @escaping Decision<DownloadStatus>
  ) throws -> NextAction<DownloadStatus> {
    guard let run = slots.runs[id] else { return update(id, change) }
    let old = run.read { $0.request }
    var new = old
    try change(&new)
    try new.check(against: stages.current.pipeline)
    let destination = new.destination
    // Steps and publication use the destination that the run has when its steps begin, so no run may begin its steps in
    // between. A file that turns out to be unchanged stays where it is.
    // What it has fetched for the earlier request does not go to the new destination.
    let goesOn = destination == old.destination || !new.changesWork(begunFor: old)
    let isInTime =
      goesOn
      && run.update { record in
        guard record.phase == .transferring && !record.isAsking || destination == old.destination
        else { return false }
        record.request.destination = destination
        return true
      }
    guard isInTime else {
      if new.changesWork(begunFor: old) { run.stop(.changed) }
      return .wait(for: [run], comesBeforeLeases: true, then: again)
    }
    return update(run.id, change) { run.update { $0.request.destination = old.destination } }
  }

  /// Changes the request in the ledger, and then that of a run.
  /// - Parameter undo: Called if the ledger has failed.
  mutating func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void,
    orElse undo: @escaping @Sendable () -> Void = {}
  ) -> NextAction<DownloadStatus> {
    let pipeline = stages.current.pipeline
    let before = slots.runs[id]?.read { $0.request }
    return .job { context, changes in
      let found: FoundRecords
      do {
        let now = context.time.date
        let record = try await context.change { number in
          try await context.store.update(id, at: now, number: number) { record in
            try record.changeRequest(change, checkedBy: pipeline)
          }
        }
        guard let record else { throw DownloadError.unknownDownload(id) }
        found = await context.withDependencies([record])
      } catch {
        undo()
        throw error
      }
      changes.ids.append(id)
      return { state, instant in
        for record in found.records {
          state.takeOver(record, since: before)
          state.noteDelay(of: record)
        }
        if let run = state.slots.runs[id], state.context.hub.isWatched(id) { state.add(.announcePresentState(run)) }
        guard let status = state.statuses(of: found, at: instant).first else { throw DownloadError.unknownDownload(id) }
        return .over(status)
      }
    }
  }
}

extension DownloadRecord {
  /// Changes the request, and checks the result.
  mutating func changeRequest(
    _ change: (inout DownloadRequest) throws -> Void, checkedBy pipeline: Pipeline
  ) throws {
    let old = request
    try change(&request)
    // Credentials that were not changed belong to the URL that they were given for.
    if request.headers == old.headers { request.bindHeaders(givenFor: old.url) }
    guard request != old else { return }
    guard request.id == old.id else {
      throw DownloadError(.invalidRequest, "a download keeps its id: add another one instead of “\(request.id)”")
    }
    guard phase != .finished || request.destination == old.destination || request.asksForAnotherFile(than: old)
    else {
      throw DownloadError(.invalidRequest, "“\(id)” is finished: rename it instead of changing its destination")
    }
    // A run checks again before it works. Digests of an earlier pipeline do not prevent other changes.
    let mayChangeChecks =
      request.changesWork(begunFor: old) || request.tags != old.tags || request.metadata != old.metadata
    try request.check(against: pipeline, withDigests: mayChangeChecks)
  }
}
