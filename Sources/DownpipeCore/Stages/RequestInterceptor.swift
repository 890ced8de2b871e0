/// Wraps the opening of a source: adds header fields or credentials, looks at replies. A fresh link for a dead one is
/// a ``LinkRefresher``'s business, which keeps it in the ledger.
///
/// Interceptors are folded once, the first one written outermost.
///
/// ```swift
/// struct BearerToken: RequestInterceptor {
///   func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
///     var request = request
///     request.headers["Authorization"] = "Bearer …"
///     return try await next(request)
///   }
/// }
/// ```
public protocol RequestInterceptor: Stage {
  /// Opens the request through `next`, changing what goes in or looking at what comes out.
  ///
  /// A reply that is not returned must be discarded.
  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply
}

/// The rest of the chain: the next interceptor, in the end the source.
public typealias RequestInterceptorNext = @Sendable (SourceRequest) async throws -> SourceReply

extension RequestInterceptor {
  /// Adds the interceptor inside those that are there.
  public func contribute(to parts: inout PipelineParts) { parts.interceptors.append(self) }
}
