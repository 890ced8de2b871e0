public import DownpipeCore
public import Foundation

/// Goes on with a fresh link where the old one has died, from the byte that was reached.
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
/// The closure is called
/// - before a link is used whose time is over, or will be within ``margin``: see ``LinkExpiry``;
/// - when the server answers 401, 403 or 410, or whatever else the retry policy's table calls for a refresh;
/// - when a log-in page comes instead of the file: a page (`text/html`) where the bytes on disk are something else, or
///   behind a redirect of a link to something else.
///
/// The fresh link is kept in the ledger, and may lead to another host. The bytes on disk go on to be used if the
/// validator, or a comparison, or the digest agrees; see `ResumeValidation`. Links that keep dying use up the
/// retry policy's attempts, which progress gives back.
public struct RefreshURL: LinkRefresher, RequestInterceptor {
  /// How long before its time is over a link is taken for dead.
  public let margin: Duration
  private let now: @Sendable () -> Date
  private let renew: @Sendable (ExpiredLink) async throws -> FreshLink

  /// Makes a stage.
  ///
  /// - Parameters:
  ///   - margin: how long before its time is over a link is taken for dead; a transfer that has begun goes on.
  ///   - now: the calendar's time.
  ///   - renew: gives a fresh link. Called once at a time for each download, on no particular thread, and
  ///     cancelled with the download. What it throws counts as a failed attempt; a `DownloadError` is taken as it is.
  public init(
    margin: Duration = .seconds(10), now: @escaping @Sendable () -> Date = { Date() },
    _ renew: @escaping @Sendable (ExpiredLink) async throws -> FreshLink
  ) {
    self.margin = margin
    self.now = now
    self.renew = renew
  }

  /// How early it acts.
  public var summary: String { "\(margin / .seconds(1)) s before a link expires" }

  /// Takes both places in the pipeline.
  public func contribute(to parts: inout PipelineParts) {
    parts.refreshers.append(self)
    parts.interceptors.append(self)
  }

  /// Asks the closure.
  public func refresh(_ expired: ExpiredLink) async throws -> FreshLink { try await renew(expired) }

  /// Opens a link that is still alive.
  ///
  /// - Throws: ``DownloadError`` with `.linkExpired` for one that is not, and for a log-in page in place of the file.
  public func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    // A link that is fresh is used, whatever this machine's clock makes of it.
    if !request.hasFreshLink, let expiry = LinkExpiry.date(of: request.url),
      expiry <= now().addingTimeInterval(margin / .seconds(1))
    {
      throw DownloadError(.linkExpired, "the link's time is over: it says so itself", stage: name)
    }
    let reply = try await next(request)
    if LogInPage.isLikely(reply, to: request) {
      reply.body.discard()
      throw DownloadError(
        .linkExpired, "a page came instead of the file: most likely one to log in at", stage: name)
    }
    return reply
  }
}
