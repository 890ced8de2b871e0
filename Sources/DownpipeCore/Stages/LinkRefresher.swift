public import Foundation

/// A stage that supplies a fresh link for a download whose link has expired.
///
/// The engine calls it when the retry policy decides to ``RetryDecision/refresh(after:)``, at the beginning of the next
/// attempt. The fresh link is saved in the ledger before it is used. The stored bytes are kept. They pass the same
/// checks as after any other interruption, even if the fresh link leads to another host.
public protocol LinkRefresher: Stage {
  /// Returns a fresh link for an expired one. It may be called for several downloads at the same time.
  ///
  /// - Throws: Any error; it counts as a failure of the attempt. Cancelling the task ends the call.
  func refresh(_ expired: ExpiredLink) async throws -> FreshLink
}

extension LinkRefresher {
  /// Becomes the pipeline's refresher.
  public func contribute(to parts: inout PipelineParts) { parts.refreshers.append(self) }
}

/// A link that has expired.
public struct ExpiredLink: Sendable, Hashable {
  /// The download's request, with the expired link.
  public let request: DownloadRequest
  /// The error because of which the link counts as expired; `nil` when it is no longer known.
  public let error: DownloadError?
  /// The number of stored bytes.
  public let received: Int64

  /// Creates a description of an expired link.
  public init(request: DownloadRequest, error: DownloadError?, received: Int64 = 0) {
    self.request = request
    self.error = error
    self.received = received
  }
}

/// A link that replaces an expired one.
public struct FreshLink: Sendable, Hashable {
  /// The URL that serves the same bytes. Its host may be another one.
  public var url: URL
  /// The header fields to send with the URL; `nil` keeps those of the request. If the URL is of another origin, kept
  /// fields that are bound to an origin are not sent to it; see ``HeaderField/Scope``.
  public var headers: HeaderFields?

  /// Creates a fresh link.
  public init(_ url: URL, headers: HeaderFields? = nil) {
    self.url = url
    self.headers = headers
  }
}

extension FreshLink: CustomStringConvertible {
  /// The URL without its secrets, suitable for logs.
  public var description: String { url.redacted }
}
