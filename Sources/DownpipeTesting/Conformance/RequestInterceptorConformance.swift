public import DownpipeCore
import Foundation

/// Checks that an interceptor keeps the contract of ``/DownpipeCore/RequestInterceptor``.
///
/// ```swift
/// try await RequestInterceptorConformance(BearerToken()).run()
/// ```
/// The suite provides the rest of the chain, which replies with bytes, refuses with statuses such as 401, and fails.
public struct RequestInterceptorConformance: Sendable {
  private let interceptor: any RequestInterceptor
  private let request: SourceRequest?
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - interceptor: The interceptor to check.
  ///   - request: A request that it passes on; a request for `https://example.org/` when `nil`.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason.
  public init(
    _ interceptor: any RequestInterceptor, request: SourceRequest? = nil, limit: Duration = .hangLimit,
    excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.interceptor = interceptor
    self.request = request
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport(
      "RequestInterceptorConformance(\(interceptor.name))", excluding: exclusions, limit: limit)
    let request = try self.request ?? SourceRequest(url: DownloadRequest("https://example.org/conformance").url)
    await report.check("opens-through-next", "the request is opened with next, and its reply is returned") {
      let replies = Replies()
      let reply = try await interceptor.intercept(request) { replies.give(to: $0) }
      try expect(replies.count > 0, "next was not called")
      try await replies.expectTrue(reply)
    }
    report.build(on: "opens-through-next")
    await report.check("replies-are-discarded", "a reply that is not returned is discarded") {
      for refusal in [401, 403, 407, 429, 503] {
        let replies = Replies(refusing: refusal)
        let result: Result<SourceReply, any Error>
        do {
          result = .success(try await interceptor.intercept(request) { replies.give(to: $0) })
        } catch {
          result = .failure(error)
        }
        if case .success(let reply) = result { try await replies.expectTrue(reply) }
        try expectEqual(
          replies.dropped, 0, "the number of replies, the first a \(refusal), neither returned nor discarded")
      }
    }
    await report.check("failures-are-thrown", "an error is thrown when every call of next fails") {
      do {
        let reply = try await interceptor.intercept(request) { _ in throw DownloadError(.network, "conformance") }
        reply.body.discard()
      } catch {
        return
      }
      throw Deviation("a reply was returned although every call of next threw")
    }
    await report.check("cancellation-is-passed-on", "cancelling the task cancels the call of next") {
      let isOpening = Watched(false)
      let task = Task {
        try await interceptor.intercept(request) { _ in
          isOpening.update { $0 = true }
          await Watched(false).wait { $0 }
          throw CancellationError()
        }
      }
      await isOpening.wait { $0 }
      task.cancel()
      if case .success(let reply) = await task.result {
        reply.body.discard()
        throw Deviation("a reply was returned")
      }
    }
    await report.check("requests-do-not-mix", "requests that are opened at the same time get their own replies") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            var own = request
            own.id = DownloadID("conformance-\(number)")
            let id = own.id
            let replies = Replies()
            let reply = try await interceptor.intercept(own) { request in
              await Task.yield()
              if request.id != id {
                throw Deviation("the request for “\(id)” was passed on as one for “\(request.id)”")
              }
              return replies.give(to: request)
            }
            try await replies.expectTrue(reply)
          }
        }
        try await group.waitForAll()
      }
    }
    await report.check(
      "credentials-are-bound", "a mirror and a place named by a server get no credentials of the download"
    ) {
      let own = await passedOn(request)
      for isNamedByServer in [false, true] {
        var elsewhere = request
        elsewhere.url = try DownloadRequest("https://mirror.invalid/conformance").url
        elsewhere.isNamedByServer = isNamedByServer
        elsewhere.headers = elsewhere.confined(to: request).headers
        for sent in await passedOn(elsewhere) {
          try Self.expectNoCredentials(in: sent, of: own, givenTo: elsewhere)
        }
      }
    }
    try report.finish()
  }

  /// The requests that the interceptor makes of a request, as the engine passes them on.
  private func passedOn(_ request: SourceRequest) async -> [SourceRequest] {
    let (sent, replies) = (Watched<[SourceRequest]>([]), Replies())
    // It may refuse the place.
    let reply = try? await interceptor.intercept(request) { made in
      sent.update { $0.append(made.confined(to: request)) }
      return replies.give(to: made)
    }
    reply?.body.discard()
    return sent.value
  }

  private static let credentials: Set<String> = [
    "authorization", "cookie", "private-token", "proxy-authorization", "x-amz-security-token", "x-api-key",
    "x-auth-token",
  ]

  /// Checks that nothing that was added for another place is a credential of the download's own one. A signature differs with
  /// the place.
  private static func expectNoCredentials(
    in sent: SourceRequest, of own: [SourceRequest], givenTo request: SourceRequest
  ) throws {
    for field in sent.headers.fields where !request.headers.fields.contains(field) {
      let name = field.name.lowercased()
      let isBound = if case .origin = field.scope { true } else { false }
      guard isBound || credentials.contains(name) else { continue }
      let isSame = own.contains { $0.headers.values(name).contains(field.value) }
      try expect(!isSame, "\(field.name) of the download is sent to \(sent.url.redacted)")
    }
    guard let password = sent.url.password(percentEncoded: true) else { return }
    let isSame = own.contains { $0.url.password(percentEncoded: true) == password }
    try expect(!isSame, "the password of the download's URL is sent to another origin")
  }
}

/// The rest of a chain: returns replies with different bytes and tracks whether each was read or discarded.
private final class Replies: Sendable {
  private struct State {
    var given: [SourceReply] = []
    var ended: Set<Int> = []
  }

  private let state = Watched(State())
  private let refusal: Int?

  /// Creates a chain whose first reply is the given refusal, if any.
  init(refusing refusal: Int? = nil) { self.refusal = refusal }

  var count: Int { state.value.given.count }
  /// The replies that were neither read nor discarded.
  var dropped: Int { state.value.given.count - state.value.ended.count }

  func give(to request: SourceRequest) -> SourceReply {
    state.update { state in
      let number = state.given.count
      let bytes = DownloadFixtures.pattern(size: 1000, seed: UInt64(number) + 1)
      let isRefused = number == 0 && refusal != nil
      let body = Body(discard: { self.end(number) }) { sink in
        self.end(number)
        if !isRefused { try sink(bytes.span.bytes) }
      }
      let reply = SourceReply(
        coverage: isRefused ? .none(.status(refusal ?? 0)) : .whole, length: .known(isRefused ? 0 : 1000),
        validator: Validator(entityTag: EntityTag("conformance-\(number)")), finalURL: request.url, body: body)
      state.given.append(reply)
      return reply
    }
  }

  private func end(_ number: Int) { state.update { _ = $0.ended.insert(number) } }

  /// Reads a reply and checks that it is an unchanged reply of this chain.
  func expectTrue(_ reply: SourceReply) async throws {
    let body = ReceivedBody(limit: 1000)
    try await reply.body.forEachChunk(body.sink)
    let original = try expectValue(
      state.value.given.first { $0.validator == reply.validator }, "the validator is not that of a reply of next")
    try expectEqual(reply.coverage, original.coverage, "the coverage")
    try expectEqual(reply.length, original.length, "the length")
    let number = state.value.given.firstIndex { $0.validator == reply.validator } ?? 0
    if case .whole = reply.coverage {
      try body.expectBytes(DownloadFixtures.pattern(size: 1000, seed: UInt64(number) + 1)[...])
    }
  }
}
