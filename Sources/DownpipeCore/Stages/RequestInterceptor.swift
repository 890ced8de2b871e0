/// A stage that wraps the opening of a source: it adds header fields or credentials, or inspects replies.
///
/// To replace an expired link use a ``LinkRefresher``, whose result the ledger keeps. The first interceptor of a
/// pipeline is the outermost one.
///
/// ```swift
/// struct BearerToken: RequestInterceptor {
///   func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
///     var request = request
///     request.headers["Authorization"] = "Bearer …"    // for the origin of the download only
///     return try await next(request)
///   }
/// }
/// ```
/// A header field that an interceptor adds or changes is bound like a field of the download's request, see
/// ``HeaderField/Scope``: the engine removes it from requests for mirrors and files at other origins and for places that a
/// server has named, and a redirect to another origin does not get it. The origin is that of the download's present URL, which
/// a ``LinkRefresher`` may have replaced. An interceptor that means more gives the field a scope, such as that of a signature
/// for each place:
///
/// ```swift
/// struct Signing: RequestInterceptor {
///   let signature: @Sendable (URL) -> String
///
///   func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
///     var request = request
///     if let origin = Origin(request.url) {
///       request.headers.fields.append(HeaderField("Authorization", signature(request.url), scope: .origin(origin)))
///     }
///     return try await next(request)
///   }
/// }
/// ```
/// For access tokens of OAuth, which expire, there is `Authorized` in DownpipeLinks.
public protocol RequestInterceptor: Stage {
  /// Opens the request through `next`; may change the request and inspect the reply.
  ///
  /// It may be called for several requests at the same time. A reply that is not returned must be discarded, and a
  /// reply that is returned must be unchanged. ``SourceRequest/isForOwnOrigin`` says whether a field with
  /// ``HeaderField/Scope/automatic`` will be sent; a request with another ``SourceRequest/url`` is judged by that URL.
  /// - Throws: An error when there is no reply of `next` to return; `CancellationError` when the task is cancelled.
  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply
}

extension SourceRequest {
  /// Returns the request that an interceptor has made of `given`, without the header fields that must not reach its place.
  ///
  /// The interceptor cannot change what decides it: the download's own URL, and whether a server has named the place.
  package func confined(to given: SourceRequest) -> SourceRequest {
    var request = self
    request.downloadURL = given.downloadURL
    request.isNamedByServer = isNamedByServer || given.isNamedByServer
    request.headers =
      request.isNamedByServer ? headers.forEverybody : headers.reaching(url, ofDownloadAt: given.downloadURL)
    return request
  }
}

/// The rest of the chain: the next interceptor, and finally the source.
public typealias RequestInterceptorNext = @Sendable (SourceRequest) async throws -> SourceReply

extension RequestInterceptor {
  /// Adds the interceptor as the innermost one so far.
  public func contribute(to parts: inout PipelineParts) { parts.interceptors.append(self) }
}
