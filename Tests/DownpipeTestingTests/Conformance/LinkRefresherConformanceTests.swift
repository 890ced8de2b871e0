import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct LinkRefresherConformanceTests {
  private struct NoLink: Error {}
  typealias Renew = @Sendable (ExpiredLink) async throws -> FreshLink

  private static let right: Renew = { expired in
    try Task.checkCancellation()
    guard expired.request.id != "gone" else { throw NoLink() }
    return FreshLink(URL(string: "https://example.org/fresh/\(expired.request.id)")!)
  }

  private static func run(limit: Duration = .hangLimit, _ renew: @escaping Renew) async throws {
    let links = try ["a", "b", "gone"].map { id in
      ExpiredLink(request: try DownloadRequest("https://example.org/dead/\(id)", id: DownloadID(id)), error: nil)
    }
    try await LinkRefresherConformance(
      FakeLinkRefresher(renew), links[0], and: links[1], hopeless: links[2], limit: limit
    ) { expired, fresh in
      if fresh.url.lastPathComponent != expired.request.id.rawValue { throw NoLink() }
    }.run()
  }

  @Test func aRightRefresherPasses() async throws { try await Self.run(Self.right) }

  @Test("The same URL with other header fields is a fresh link")
  func newHeaderFieldsAreEnough() async throws {
    try await Self.run { expired in
      let fresh = try await Self.right(expired)
      return FreshLink(
        fresh.url.deletingLastPathComponent().deletingLastPathComponent()
          .appending(path: "dead/\(expired.request.id)"), headers: ["X-Token": "new"])
    }
  }

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    /// The time limit. Only stages that hang reach it; others may be slow on a busy machine.
    var limit = Duration.hangLimit
    let renew: @Sendable () -> Renew
    var testDescription: String { rule }
  }

  @Test(arguments: [
    Flaw(rule: "gives-a-fresh-link") { { _ in throw NoLink() } },
    Flaw(rule: "gives-a-fresh-link") { { _ in FreshLink(URL(string: "fresh/link")!) } },
    Flaw(rule: "gives-a-fresh-link") { { _ in FreshLink(URL(string: "https://example.org/one-for-all")!) } },
    Flaw(rule: "link-is-new") {
      { expired in expired.request.id == "gone" ? try await right(expired) : FreshLink(expired.request.url) }
    },
    Flaw(rule: "links-do-not-mix") {
      // The refresher keeps the state of one call.
      let calls = Watched<[ExpiredLink]>([])
      return { expired in
        calls.update { $0.append(expired) }
        // After one call for each link come the six that this rule makes at once.
        if calls.value.count > 2 { await calls.wait { $0.count >= 8 } }
        return try await right(calls.value.last ?? expired)
      }
    },
    Flaw(rule: "ends-on-cancellation", limit: .seconds(5)) {
      { expired in
        if Task.isCancelled { await Task { await Watched(false).wait { $0 } }.value }
        return try await right(expired)
      }
    },
    Flaw(rule: "failure-is-thrown") {
      { expired in expired.request.id == "gone" ? FreshLink(expired.request.url) : try await right(expired) }
    },
  ])
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let broken = try await brokenRules { try await Self.run(limit: flaw.limit, flaw.renew()) }
    // Under a short limit, which a flaw that hangs needs, a busy machine may miss other rules as well.
    #expect(flaw.limit == .hangLimit ? broken == [flaw.rule] : broken.contains(flaw.rule))
  }
}
