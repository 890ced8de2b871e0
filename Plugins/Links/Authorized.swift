public import DownpipeCore
import Foundation

/// A stage that adds an access token of OAuth 2.0 to requests, and renews the token when a server rejects it (RFC 6750).
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   Authorized { rejected in
///     AccessToken(try await library.token(isRejected: rejected != nil))
///   }
///   FileStore("~/Films")
/// }
/// ```
/// The token is sent to the origin of each download, or to the given origins only. Mirrors at other origins, places that a
/// server has named and redirects to another origin do not get it; see ``/DownpipeCore/HeaderField/Scope``. A request that has
/// an `Authorization` field keeps that one.
///
/// All downloads share one token. When a server replies with 401, the closure is called once for all requests that this token
/// was rejected for, and each request is sent once more with the new token. A second 401 is the reply.
///
/// List the origins where links lead to other hosts, such as with ``RefreshURL``: the origin of a fresh link is that of its
/// download.
public struct Authorized: RequestInterceptor {
  private let origins: Set<Origin>?
  private let token: SharedToken

  /// Creates a stage that obtains access tokens from a closure.
  ///
  /// - Parameters:
  ///   - origins: The origins that get the token, from every download; `nil` for the origin of each download.
  ///   - provider: Returns a token: `nil` asks for the first one, a token for another in its place, because a server has
  ///     rejected it. It is called once at a time, on any thread. It must end when its task is cancelled, which happens when all
  ///     downloads that wait for it are. A `DownloadError` that it throws is passed on as it is; for another error, and for the
  ///     rejected token, the waiting downloads fail with `.httpStatus` and the status 401.
  public init(
    for origins: Set<Origin>? = nil,
    by provider: @escaping @Sendable (_ rejected: AccessToken?) async throws -> AccessToken
  ) {
    self.origins = origins
    token = SharedToken(stage: "Authorized", provider)
  }

  /// The origins that get the token, as text.
  public var summary: String {
    guard let origins else { return "the origin of each download" }
    return origins.map(\.description).sorted().joined(separator: ", ")
  }

  /// Opens the request with the token, and once more with another one after a 401.
  ///
  /// - Throws: `DownloadError` if there is no token; `CancellationError` when the task is cancelled, also while other
  ///   downloads go on waiting for the token.
  public func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    guard let scope = scope(for: request) else { return try await next(request) }
    let first = try await token.current(insteadOf: nil)
    let reply = try await next(request.authorized(by: first, scope))
    guard reply.coverage == .none(.status(401)), reply.hasSeenToken(of: request) else { return reply }
    // The connection is free while the provider is asked.
    reply.body.discard()
    return try await next(request.authorized(by: try await token.current(insteadOf: first), scope))
  }

  /// The scope of the field for a request; `nil` if it does not get the token.
  private func scope(for request: SourceRequest) -> HeaderField.Scope? {
    guard request.url.isHTTP, request.headers["Authorization"] == nil else { return nil }
    guard let origins else { return request.isForOwnOrigin ? .automatic : nil }
    guard !request.isNamedByServer, let origin = Origin(request.url), origins.contains(origin) else { return nil }
    return .origin(origin)
  }
}

extension SourceRequest {
  fileprivate func authorized(by token: AccessToken, _ scope: HeaderField.Scope) -> SourceRequest {
    var request = self
    request.headers.fields.append(HeaderField("Authorization", "Bearer \(token.text)", scope: scope))
    return request
  }
}

extension SourceReply {
  /// Whether the server that has replied got the token: a redirect to another origin drops it.
  fileprivate func hasSeenToken(of request: SourceRequest) -> Bool {
    guard let finalURL else { return true }
    return Origin(finalURL) == Origin(request.url)
  }
}
