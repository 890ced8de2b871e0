import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct RequestInterceptorConformanceTests {
  typealias Intercept = @Sendable (SourceRequest, RequestInterceptorNext) async throws -> SourceReply

  private static func run(limit: Duration = .hangLimit, _ intercept: @escaping Intercept) async throws {
    try await RequestInterceptorConformance(FakeInterceptor(intercept), limit: limit).run()
  }

  private static let token: Intercept = { request, next in
    var request = request
    request.headers["Authorization"] = "Bearer token"
    return try await next(request)
  }

  /// Repeats the request after a 401.
  private static let renewing: Intercept = { request, next in
    let reply = try await next(request)
    guard reply.coverage == .none(.status(401)) else { return reply }
    reply.body.discard()
    return try await next(request)
  }

  @Test func rightInterceptorsPass() async throws {
    try await Self.run { try await $1($0) }
    try await Self.run(Self.token)
    try await Self.run(Self.renewing)
    try await Self.run { try await $1(Self.signed($0, "signature of \($0.url)")) }
    try await Self.run { request, next in
      var request = request
      request.headers.fields.append(HeaderField("X-Trace", "1", scope: .everywhere))
      return try await next(request)
    }
    // An interceptor that rejects a reply.
    try await Self.run { request, next in
      let reply = try await next(request)
      guard reply.coverage != .none(.status(403)) else {
        reply.body.discard()
        throw DownloadError(.linkExpired, "the link has expired")
      }
      return reply
    }
  }

  /// Adds a field for the very place of a request.
  private static func signed(_ request: SourceRequest, _ value: String) -> SourceRequest {
    var request = request
    if let origin = Origin(request.url) {
      request.headers.fields.append(HeaderField("Authorization", value, scope: .origin(origin)))
    }
    return request
  }

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    /// The time limit. Only stages that hang reach it; others may be slow on a busy machine.
    var limit = Duration.hangLimit
    let intercept: @Sendable () -> Intercept
    var testDescription: String { rule }
  }

  @Test(arguments: [
    Flaw(rule: "opens-through-next") { { _, _ in SourceReply(coverage: .whole, body: .bytes([1])) } },
    Flaw(rule: "opens-through-next") {
      { request, next in
        var reply = try await next(request)
        reply.length = .unknown
        return reply
      }
    },
    Flaw(rule: "opens-through-next") {
      { request, next in
        var reply = try await next(request)
        reply.body = .bytes([1, 2, 3])
        return reply
      }
    },
    Flaw(rule: "opens-through-next") { { _, _ in throw DownloadError(.network, "never") } },
    Flaw(rule: "replies-are-discarded") {
      { request, next in
        let reply = try await next(request)
        return reply.coverage == .none(.status(407)) ? try await next(request) : reply
      }
    },
    Flaw(rule: "replies-are-discarded") {
      { request, next in
        let reply = try await next(request)
        if case .none = reply.coverage { throw DownloadError(.httpStatus, "refused") }
        return reply
      }
    },
    Flaw(rule: "failures-are-thrown") {
      { request, next in
        do { return try await next(request) } catch is DownloadError {
          return SourceReply(coverage: .none(.status(503)), body: .empty)
        }
      }
    },
    Flaw(rule: "cancellation-is-passed-on", limit: .seconds(5)) {
      { request, next in
        try await withoutActuallyEscaping(next) { next in try await Task { try await next(request) }.value }
      }
    },
    Flaw(rule: "credentials-are-bound") {
      { request, next in
        var request = request
        request.headers.fields.append(HeaderField("Authorization", "Bearer token", scope: .everywhere))
        return try await next(request)
      }
    },
    Flaw(rule: "credentials-are-bound") { { try await $1(signed($0, "Bearer token")) } },
    Flaw(rule: "credentials-are-bound") {
      { request, next in
        var request = request
        var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
        parts?.user = "me"
        parts?.password = "word"
        request.url = parts?.url ?? request.url
        return try await next(request)
      }
    },
    Flaw(rule: "requests-do-not-mix") {
      // The interceptor keeps the state of one request.
      let latest = Watched<SourceRequest?>(nil)
      return { request, next in
        latest.update { $0 = request }
        for _ in 0..<5 { await Task.yield() }
        return try await next(latest.value ?? request)
      }
    },
  ])
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let broken = try await brokenRules { try await Self.run(limit: flaw.limit, flaw.intercept()) }
    // Under a short limit, which a flaw that hangs needs, a busy machine may miss other rules as well.
    #expect(flaw.limit == .hangLimit ? broken == [flaw.rule] : broken.contains(flaw.rule))
  }
}
