internal import Foundation

// Changing requests.
extension Engine {
  /// Changes the request of a download in one transaction of the ledger.
  func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try checkOpen()
    return try await takeTurns(for: id) { engine in
      try await engine.rankOnce()
      return try await engine.change(id, change)
    }
  }

  /// Changes the request in a turn.
  func change(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> TurnResult<DownloadStatus> {
    guard try await record(id) != nil else { throw DownloadError.unknownDownload(id) }
    guard let run = state.slots.runs[id] else { return .over(try await updated(id, change)) }
    let old = run.read { $0.request }
    var new = old
    try change(&new)
    try new.check(against: pipeline)
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
      return .wait(for: run)
    }
    do {
      return .over(try await updated(id, change))
    } catch {
      run.update { $0.request.destination = old.destination }
      throw error
    }
  }

  func updated(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    let pipeline = pipeline
    let before = state.slots.runs[id]?.read { $0.request }
    let record = try await store.update(id, at: time.date) { record in
      try record.changeRequest(change, checkedBy: pipeline)
    }
    guard let record else { throw DownloadError.unknownDownload(id) }
    noteChange(of: CollectionOfOne(id))
    decide { state, _ in state.takeOver(record, since: before) }
    state.mode.mayLease = true
    noteDelay(of: record)
    guard let run = state.slots.runs[id] else { return status(of: record, await dependencies(of: [record])) }
    if hub.isWatched(id) { run.announcePresentState() }
    return run.status
  }

  /// Lets the turn look for the next due time if a change may have released a download that has one: there is no
  /// timer for the due time of a download that waits for others.
  func noteDelay(of record: DownloadRecord) {
    if record.isQueued, record.notBefore != nil { state.waits.mayHaveDelayed = true }
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
