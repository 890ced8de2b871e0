import DownpipeCore
import DownpipeLinks
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct AuthorizedTests {
  private struct SignedOut: Error {}

  /// Gives `token-1`, `token-2` and so on, and records what each was asked for.
  private final class Tokens: Sendable {
    private let calls = Watched<[AccessToken?]>([])

    var rejected: [AccessToken?] { calls.value }

    func next(_ rejected: AccessToken?) -> AccessToken {
      calls.update {
        $0.append(rejected)
        return AccessToken("token-\($0.count)")
      }
    }
  }

  /// A server that accepts one token.
  private final class Server: Sendable {
    private let seen = Watched<[String?]>([])
    private let discards = Watched(0)
    let accepted: String
    let finalURL: URL?

    init(accepting accepted: String, finalURL: URL? = nil) { (self.accepted, self.finalURL) = (accepted, finalURL) }

    /// The `Authorization` fields so far.
    var fields: [String?] { seen.value }
    var discarded: Int { discards.value }

    func open(_ request: SourceRequest) -> SourceReply {
      let field = request.headers["Authorization"]
      seen.update { $0.append(field) }
      if field == "Bearer \(accepted)" { return SourceReply(coverage: .whole, length: .known(1), body: .bytes([1])) }
      return SourceReply(
        coverage: .none(.status(401)), finalURL: finalURL,
        body: Body(discard: { self.discards.update { $0 += 1 } }) { _ in })
    }
  }

  private static let url = URL(string: "https://a.test/1")!
  private static let other = URL(string: "https://b.test/2")!

  private let tokens = Tokens()

  private func makeStage(for origins: Set<Origin>? = nil) -> Authorized {
    Authorized(for: origins) { [tokens] in tokens.next($0) }
  }

  @Test func conforms() async throws {
    try await RequestInterceptorConformance(makeStage()).run()
    let origin = try #require(Origin("https://example.org"))
    try await RequestInterceptorConformance(makeStage(for: [origin])).run()
  }

  @Test("the token is asked for once, and again after a 401; the request is sent once more")
  func renewing() async throws {
    let (stage, server) = (makeStage(), Server(accepting: "token-2"))
    for _ in 0..<3 {
      let reply = try await stage.intercept(SourceRequest(url: Self.url)) { server.open($0) }
      #expect(reply.coverage == .whole)
    }
    #expect(server.fields == ["Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-2"])
    #expect(server.discarded == 1)
    #expect(tokens.rejected == [nil, AccessToken("token-1")])
  }

  @Test("a second 401 is the reply")
  func refusedAgain() async throws {
    let server = Server(accepting: "none")
    let reply = try await makeStage().intercept(SourceRequest(url: Self.url)) { server.open($0) }
    #expect(reply.coverage == .none(.status(401)))
    #expect(server.fields == ["Bearer token-1", "Bearer token-2"])
    #expect(server.discarded == 1, "the second reply is the caller's")
  }

  @Test("a token that was replaced meanwhile is not renewed again")
  func replacedMeanwhile() async throws {
    let (stage, server) = (makeStage(), Server(accepting: "token-2"))
    let (isOpen, isWaiting) = (Watched(false), Watched(false))
    let slow = Task {
      try await stage.intercept(SourceRequest(url: Self.url)) { request in
        let reply = server.open(request)
        if reply.coverage != .whole {
          isWaiting.update { $0 = true }
          await isOpen.wait { $0 }
        }
        return reply
      }
    }
    await isWaiting.wait { $0 }
    _ = try await stage.intercept(SourceRequest(url: Self.url)) { server.open($0) }
    isOpen.update { $0 = true }
    #expect(try await slow.value.coverage == .whole)
    #expect(tokens.rejected == [nil, AccessToken("token-1")])
  }

  @Test("which requests get the token")
  func requests() async throws {
    let origin = try #require(Origin(Self.other))
    func field(_ request: SourceRequest, _ origins: Set<Origin>? = nil) async throws -> HeaderField? {
      let sent = Watched<[HeaderField]>([])
      _ = try await makeStage(for: origins).intercept(request) { request in
        sent.update { $0 = request.headers.fields }
        return SourceReply(coverage: .whole, body: .bytes([1]))
      }
      return sent.value.first
    }
    #expect(try await field(SourceRequest(url: Self.url))?.scope == .automatic)
    let mirror = SourceRequest(url: Self.other, downloadURL: Self.url)
    #expect(try await field(mirror) == nil)
    #expect(try await field(mirror, [origin])?.scope == .origin(origin))
    #expect(try await field(SourceRequest(url: Self.url), [origin]) == nil)
    for origins in [nil, [origin]] as [Set<Origin>?] {
      #expect(try await field(SourceRequest(url: Self.other, isNamedByServer: true), origins) == nil)
    }
    #expect(try await field(SourceRequest(url: try #require(URL(string: "ftp://a.test/1")))) == nil)
    let own = SourceRequest(url: Self.url, headers: ["authorization": "Basic eA=="])
    #expect(try await field(own)?.value == "Basic eA==")
  }

  @Test("a 401 after a redirect to another origin is not about the token")
  func redirected() async throws {
    let server = Server(accepting: "none", finalURL: Self.other)
    let reply = try await makeStage().intercept(SourceRequest(url: Self.url)) { server.open($0) }
    #expect(reply.coverage == .none(.status(401)) && server.discarded == 0)
    #expect(tokens.rejected == [nil])
  }

  @Test("200 downloads whose token has expired ask for one new token")
  func manyDownloads() async throws {
    let server = Server(accepting: "token-2")
    let guarded = FakeInterceptor { request, next in
      let reply = server.open(request)
      if case .none = reply.coverage { return reply }
      reply.body.discard()
      return try await next(request)
    }
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource(everyURL: .init([1, 2, 3]))
      FakeAdmissionPolicy(maximumConcurrent: 200)
      makeStage()
      guarded
      FakeStorage()
      Retry(.never)
    }
    try await downloader.add(
      contentsOf: try (0..<200).map { try DownloadRequest("https://a.test/\($0)", id: DownloadID("\($0)")) })
    try await downloader.waitUntilIdle()
    let states = try await downloader.statuses(of: (0..<200).map { DownloadID("\($0)") }).values.map(\.state.phase)
    await downloader.shutdown()
    #expect(states.count == 200 && states.allSatisfy { $0 == .finished })
    #expect(tokens.rejected == [nil, AccessToken("token-1")])
  }

  @Test("a provider that fails is a 401 of this stage, without its text")
  func failing() async throws {
    struct Leak: Error, CustomStringConvertible { let description = "SECRET" }
    let stage = Authorized { _ in throw Leak() }
    let error = await #expect(throws: DownloadError.self) {
      try await stage.intercept(SourceRequest(url: Self.url)) { Server(accepting: "x").open($0) }
    }
    #expect(error?.code == .httpStatus && error?.httpStatus == 401 && error?.stage == "Authorized")
    #expect(error.map { !"\($0)".contains("SECRET") } == true)
  }

  @Test("an error of the provider that says what it is, and a token that was rejected already")
  func refusals() async throws {
    let offline = Authorized { _ in throw DownloadError(.offline, "no network") }
    let error = await #expect(throws: DownloadError.self) {
      try await offline.intercept(SourceRequest(url: Self.url)) { Server(accepting: "x").open($0) }
    }
    #expect(error?.code == .offline)
    let same = Authorized { _ in AccessToken("same") }
    let server = Server(accepting: "other")
    let again = await #expect(throws: DownloadError.self) {
      try await same.intercept(SourceRequest(url: Self.url)) { server.open($0) }
    }
    #expect(again?.httpStatus == 401 && server.fields.count == 1 && server.discarded == 1)
  }

  @Test func noDescriptionHasTheToken() async throws {
    let stage = Authorized { _ in AccessToken("SECRET") }
    _ = try await stage.intercept(SourceRequest(url: Self.url)) { Server(accepting: "SECRET").open($0) }
    var text = "\(stage) \(AccessToken("SECRET")) \(String(reflecting: AccessToken("SECRET"))) \(stage.summary)"
    dump(stage, to: &text)
    dump(AccessToken("SECRET"), to: &text)
    #expect(!text.contains("SECRET"))
    #expect(stage.summary == "the origin of each download")
    let origins = Set(["https://b.test", "https://a.test:8443"].compactMap { Origin($0) })
    #expect(makeStage(for: origins).summary == "https://a.test:8443, https://b.test")
  }
}
