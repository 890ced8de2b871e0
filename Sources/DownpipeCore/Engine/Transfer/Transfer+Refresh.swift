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
      run.findings.withLock { $0.asksWithoutCondition = true }
      run.announce(.refused(error.located(stage: nil, url: request.url, attempt: request.attempt)))
      return .askAgain
    case .unchanged:
      reply.body.discard()
      run.findings.withLock { $0.isUnchanged = true }
      run.update { $0.checkpoint.freshUntil = reply.freshUntil(asked) }
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
    if isNamed { try? await run.storage.removePartial(run.partialKey) }
  }
}

extension SourceReply {
  /// The time until which the reply is fresh, if it was asked for at a time.
  func freshUntil(_ asked: Date) -> Date? {
    freshFor.map { asked.addingTimeInterval(min($0, Self.longestFreshness) / .seconds(1)) }
  }
}
