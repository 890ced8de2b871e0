internal import Foundation
internal import Synchronization

// The first request of a refresh: a single one, with a condition if the published file has a validator.
extension Transfer {
  /// What to do next after a reply to the first request of a refresh.
  enum Refreshed: Sendable {
    /// The published file is the one on the server.
    case unchanged
    /// Ask again, without the condition.
    case askAgain
    /// Plan as for a download without bytes.
    case plan
  }

  /// Judges the reply to the first request of a refresh.
  ///
  /// - Parameter asked: The time of the request, from which its freshness counts.
  @inline(never)  // The frame has room for a checkpoint, which other downloads do not need.
  func judge(_ reply: SourceReply, to request: SourceRequest, asked: Date) throws -> Refreshed {
    switch RefreshPlan.decide(published: run.read { $0.checkpoint }, request: request, reply: reply) {
    case .judge:
      return .plan
    case .reject(let error):
      throw error
    case .askAgain(let error):
      reply.body.discard()
      run.state.withLock { $0.asksWithoutCondition = true }
      run.announce(.refused(error.located(stage: nil, url: request.url, attempt: request.attempt)))
      return .askAgain
    case .unchanged:
      reply.body.discard()
      run.state.withLock { state in
        state.isUnchanged = true
        state.record.checkpoint.freshUntil = reply.freshUntil(asked)
      }
      return .unchanged
    }
  }

  /// Gives up what is known of the published file, because another one is about to be fetched.
  ///
  /// The ledger is told first: from now on the record is that of a download whose new file takes the place of the earlier
  /// one. The file itself stays where it is.
  func fetchAnew() async throws {
    try await run.fetchAnew()
    book.reset(to: 0)
  }

  /// Closes a partial that nothing was written to.
  func discardUnused(_ partial: any Partial) async {
    let isNamed = partial.isNamed
    try? partial.close()
    if isNamed { try? await run.storage.removePartial(run.key) }
  }
}

extension SourceReply {
  /// The time until which the reply is fresh, if it was asked for at a time.
  func freshUntil(_ asked: Date) -> Date? {
    freshFor.map { asked.addingTimeInterval(min($0, Self.longestFreshness) / .seconds(1)) }
  }
}

extension Run {
  /// The condition of a request to one of the download's places; `nil` to fetch the file in any case.
  ///
  /// A validator means something only for the place that has sent it, or for the URL of the request, which may lead there
  /// by a redirect.
  func condition(for url: URL) -> Validator? {
    state.withLock { state in
      let record = state.record
      guard record.isAsking, !state.asksWithoutCondition, let validator = record.checkpoint.validator,
        validator.conditionField != nil
      else { return nil }
      guard let resource = record.checkpoint.resource, resource != url.resourceKey else { return validator }
      let isOfMirror = record.request.mirrors.contains { $0.resourceKey == resource }
      return url == record.request.url && !isOfMirror ? validator : nil
    }
  }

  /// Prepares a refresh: a file that was removed, or changed by another program, is fetched as a whole. So is one in
  /// memory, whose bytes the record does not have.
  func prepareRefresh() async throws {
    guard let stored = read({ $0.isAsking ? .some($0.steps.artifact) : .none }) else { return }
    if let stored, stored.path != nil, await storage.contains(try storage.artifact(from: stored)) { return }
    try await fetchAnew()
  }

  /// Forgets the published file as the content of the download, first in the ledger. It stays in place.
  func fetchAnew() async throws {
    update { $0.fetchAnew() }
    received.store(0, ordering: .relaxed)
    try await save([.checkpoint, .steps])
  }

  /// The published file of a refreshed download that has not changed.
  func unchangedArtifact() throws -> Artifact {
    // From now on a change of the destination waits for the end of the run.
    let stored = update { record in
      record.apply(.bytesComplete)
      return record.steps.artifact
    }
    guard let stored else { throw DownloadError(.storage, "the published file is not in the record") }
    return try storage.artifact(from: stored)
  }
}
