public import DownpipeCore
public import Foundation

/// A stage that replaces an expired link with a fresh one and continues from the stored bytes.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   RefreshURL { expired in
///     let link = try await library.link(for: expired.request.id)
///     return FreshLink(link.url, headers: ["Authorization": link.token])
///   }
///   FileStore("~/Films")
/// }
/// ```
/// The closure is called in these cases:
/// - A link is about to be used that has expired or will expire within ``margin``; see ``LinkExpiry``.
/// - The server replies with 401, 403 or 410, or with another failure for which the retry policy's table has the action
///   `refresh`.
/// - The server sends a log-in page instead of the file: a page (`text/html`) when the stored bytes are of another
///   type, or after a redirect of a link to another type.
///
/// The ledger keeps the fresh link, which may lead to another host. The stored bytes are used if the validator, a
/// comparison or the digest confirms them; see `ResumeValidation`. Links that keep expiring use up the retry policy's
/// attempts, which progress resets.
public struct RefreshURL: LinkRefresher, RequestInterceptor {
  /// How long before its expiry a link is treated as expired.
  public let margin: Duration
  private let now: @Sendable () -> Date
  private let renew: @Sendable (ExpiredLink) async throws -> FreshLink

  /// Creates a stage that obtains fresh links from a closure.
  ///
  /// - Parameters:
  ///   - margin: How long before its expiry a link is treated as expired. A running transfer is not affected.
  ///   - now: Returns the calendar time.
  ///   - renew: Returns a fresh link. It is called once at a time for each download, on any thread, and cancelled with
  ///     the download. An error that it throws counts as a failed attempt; a `DownloadError` is passed on as it is.
  public init(
    margin: Duration = .seconds(10), now: @escaping @Sendable () -> Date = { Date() },
    _ renew: @escaping @Sendable (ExpiredLink) async throws -> FreshLink
  ) {
    self.margin = margin
    self.now = now
    self.renew = renew
  }

  /// The margin before a link's expiry, as text.
  public var summary: String { "\(margin / .seconds(1)) s before a link expires" }

  /// Adds the stage both as link refresher and as interceptor.
  public func contribute(to parts: inout PipelineParts) {
    parts.refreshers.append(self)
    parts.interceptors.append(self)
  }

  /// Returns a fresh link from the closure.
  public func refresh(_ expired: ExpiredLink) async throws -> FreshLink { try await renew(expired) }

  /// Opens a link that has not expired.
  ///
  /// - Throws: `DownloadError` with `.linkExpired` for an expired link, and for a log-in page in place of the file.
  public func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    // A fresh link is used even if it has expired by this machine's clock, which may be wrong.
    if !request.hasFreshLink, let expiry = LinkExpiry.date(of: request.url),
      expiry <= now().addingTimeInterval(margin / .seconds(1))
    {
      throw DownloadError(.linkExpired, "the link has expired, according to its own parameters", stage: name)
    }
    let reply = try await next(request)
    if LogInPage.isLikely(reply, to: request) {
      reply.body.discard()
      throw DownloadError(
        .linkExpired, "the server sent a web page instead of the file, probably a log-in page", stage: name)
    }
    return reply
  }
}
