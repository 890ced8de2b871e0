public import DownpipeCore

/// An interceptor that calls a closure and records its requests.
///
/// ```swift
/// let token = FakeInterceptor { request, next in
///   var request = request
///   request.headers["Authorization"] = "Bearer test"
///   return try await next(request)
/// }
/// ```
public final class FakeInterceptor: RequestInterceptor {
  private let intercepting: @Sendable (SourceRequest, RequestInterceptorNext) async throws -> SourceReply
  private let seen = Watched<[SourceRequest]>([])

  /// Creates an interceptor that calls the closure; without one it passes every request on.
  public init(
    _ intercepting:
      @escaping @Sendable (
        _ request: SourceRequest, _ next: RequestInterceptorNext
      ) async throws -> SourceReply = { try await $1($0) }
  ) {
    self.intercepting = intercepting
  }

  /// The requests so far, in order.
  public var requests: [SourceRequest] { seen.value }

  /// Calls the closure.
  public func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    seen.update { $0.append(request) }
    return try await intercepting(request, next)
  }
}
