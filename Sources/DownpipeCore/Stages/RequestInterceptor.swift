/// A stage that wraps the opening of a source: it adds header fields or credentials, or inspects replies.
///
/// To replace an expired link use a ``LinkRefresher``, whose result the ledger keeps. The first interceptor of a
/// pipeline is the outermost one.
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
  /// Opens the request through `next`; may change the request and inspect the reply.
  ///
  /// It may be called for several requests at the same time. A reply that is not returned must be discarded, and a
  /// reply that is returned must be unchanged.
  /// - Throws: An error when there is no reply of `next` to return; `CancellationError` when the task is cancelled.
  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply
}

/// The rest of the chain: the next interceptor, and finally the source.
public typealias RequestInterceptorNext = @Sendable (SourceRequest) async throws -> SourceReply

extension RequestInterceptor {
  /// Adds the interceptor as the innermost one so far.
  public func contribute(to parts: inout PipelineParts) { parts.interceptors.append(self) }
}
