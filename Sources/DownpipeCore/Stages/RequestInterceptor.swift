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
  /// Called for several requests at the same time. A reply that is not returned must be discarded, and one that is
  /// returned is as `next` gave it.
  /// - Throws: an error when there is no reply of `next` to return; `CancellationError` when the task is cancelled.
  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply
}

/// The rest of the chain: the next interceptor, in the end the source.
public typealias RequestInterceptorNext = @Sendable (SourceRequest) async throws -> SourceReply

extension RequestInterceptor {
  /// Adds the interceptor inside those that are there.
  public func contribute(to parts: inout PipelineParts) { parts.interceptors.append(self) }
}
