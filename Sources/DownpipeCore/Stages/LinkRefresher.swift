public import Foundation

/// Gives a download whose link has died a fresh one.
///
/// It is asked when the retry policy decides to ``RetryDecision/refresh(after:)``, as the first thing of the next
/// attempt; what it gives is kept in the ledger before it is used. The bytes on disk stay, and go through the same
/// proof as after any other break, whatever host the fresh link leads to.
public protocol LinkRefresher: Stage {
  /// A fresh link for a dead one. Called for several downloads at the same time.
  ///
  /// - Throws: any error; it is treated as a failure of the attempt. Cancelling the task ends it.
  func refresh(_ expired: ExpiredLink) async throws -> FreshLink
}

extension LinkRefresher {
  /// Becomes the pipeline's refresher.
  public func contribute(to parts: inout PipelineParts) { parts.refreshers.append(self) }
}

/// A link that has died.
public struct ExpiredLink: Sendable, Hashable {
  /// The download as it is, with the dead link.
  public let request: DownloadRequest
  /// What made it be taken for dead; `nil` when that is not known any more.
  public let error: DownloadError?
  /// The bytes on disk.
  public let received: Int64

  /// Describes a dead link.
  public init(request: DownloadRequest, error: DownloadError?, received: Int64 = 0) {
    self.request = request
    self.error = error
    self.received = received
  }
}

/// A link to go on with.
public struct FreshLink: Sendable, Hashable {
  /// Where the same bytes are now, at another host perhaps.
  public var url: URL
  /// The header fields to send with it; those of the request stay when `nil`.
  public var headers: HeaderFields?

  /// Makes a link.
  public init(_ url: URL, headers: HeaderFields? = nil) {
    self.url = url
    self.headers = headers
  }
}
