internal import Foundation

/// What the reply to the first request of a refresh says about the published file.
///
/// **Only a statement about the same resource, with the same validator, leaves the published file in place.** Everything
/// else is fetched, or judged as a reply to a download without bytes.
enum RefreshPlan: Sendable, Hashable {
  /// The published file is the one on the server.
  case unchanged
  /// The reply contradicts itself, for the given reason: the request is sent again without its condition.
  case askAgain(DownloadError)
  /// The reply is judged by ``ResumePlan``, as that of a download without bytes on disk.
  case judge
  /// The reply is not used, and the published file stays.
  case reject(DownloadError)

  /// Decides on a reply.
  ///
  /// - Parameters:
  ///   - published: The checkpoint of the published file.
  ///   - request: The request that was sent, with or without a condition.
  ///   - reply: The reply; its body is not read.
  static func decide(published: Checkpoint, request: SourceRequest, reply: SourceReply) -> RefreshPlan {
    switch reply.coverage {
    case .none(.notModified):
      guard let condition = request.condition else { return .judge }
      // An entity tag means nothing for another resource, and a date less: the target of a redirect can be an older file.
      if published.isElsewhere(than: reply.finalURL ?? request.url) {
        return askAgain("of another resource than the one that the file is from")
      }
      // Also a server that has an older file now: its date is not later.
      if condition.compare(to: reply.validator) == .changed {
        return askAgain("with another validator than the one asked for")
      }
      return .unchanged
    case .none(.preconditionFailed) where request.condition != nil:
      // The right answer to a GET is a 304 (RFC 9110 §13.1.2).
      return askAgain("as a failed precondition, which it is not")
    case .whole:
      let row = ReplyRow.of(reply, to: request, known: published, .refreshed)
      if row.decision == .refuses { return .reject(row.error(reply, known: published)) }
      return published.isSame(as: reply, to: request) ? .unchanged : .judge
    case .none, .range, .multipart, .unreadable:
      return .judge
    }
  }

  private static func askAgain(_ what: String) -> RefreshPlan {
    .askAgain(DownloadError(.invalidResponse, "the server answered “Not Modified” \(what)"))
  }
}

extension Checkpoint {
  /// Whether a whole reply is the representation of the complete bytes: not every server answers conditional requests, but
  /// a strong validator says the same.
  fileprivate func isSame(as reply: SourceReply, to request: SourceRequest) -> Bool {
    guard ResumePlan.comparison(of: self, with: reply, to: request) == .sameStrong,
      reply.contentCoding == contentCoding
    else { return false }
    if case .known(let length) = reply.length, total != .known(length) { return false }
    return digests.allSatisfy { mine in reply.digests.allSatisfy { $0.algorithm != mine.algorithm || $0 == mine } }
  }
}
