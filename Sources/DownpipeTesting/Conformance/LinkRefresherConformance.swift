public import DownpipeCore
import Foundation

/// Checks that a refresher keeps the contract of ``/DownpipeCore/LinkRefresher``.
///
/// ```swift
/// let dead = ExpiredLink(request: try DownloadRequest("https://example.org/dead"), error: nil)
/// try await LinkRefresherConformance(MyRefresher(), dead).run()
/// ```
public struct LinkRefresherConformance: Sendable {
  private let refresher: any LinkRefresher
  private let links: [ExpiredLink]
  private let hopeless: ExpiredLink?
  private let verify: @Sendable (ExpiredLink, FreshLink) throws -> Void
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - refresher: The refresher to check.
  ///   - first: An expired link that it can renew.
  ///   - second: Another one, to check that links renewed at the same time are not confused.
  ///   - hopeless: An expired link that cannot be renewed.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason.
  ///   - verify: Throws when a fresh link does not belong to the expired link.
  public init(
    _ refresher: any LinkRefresher, _ first: ExpiredLink, and second: ExpiredLink? = nil,
    hopeless: ExpiredLink? = nil, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = [],
    verifying verify: @escaping @Sendable (ExpiredLink, FreshLink) throws -> Void = { _, _ in }
  ) {
    self.refresher = refresher
    links = [first, second ?? first]
    self.hopeless = hopeless
    self.verify = verify
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport(
      "LinkRefresherConformance(\(refresher.name))", excluding: exclusions, limit: limit)
    await report.check("gives-a-fresh-link", "an expired link is replaced by a link that can be opened") {
      for link in links { try await refresh(link) }
    }
    report.build(on: "gives-a-fresh-link")
    await report.check("links-do-not-mix", "links that are renewed at the same time are not confused") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for link in links + links + links { group.addTask { try await refresh(link) } }
        try await group.waitForAll()
      }
    }
    await report.check("link-is-new", "a fresh link differs from the expired one in its URL or its header fields") {
      for link in links {
        let fresh = try await refresher.refresh(link)
        let isSame = fresh.url == link.request.url && (fresh.headers ?? link.request.headers) == link.request.headers
        try expect(!isSame, "it gave the expired link \(fresh) again: throw an error if there is no other")
      }
    }
    await report.check("ends-on-cancellation", "a cancelled task ends, before and after its start") {
      let cancelled = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        _ = try await refresher.refresh(links[0])
      }
      _ = await cancelled.result
      let started = Watched(false)
      let running = Task {
        started.update { $0 = true }
        _ = try await refresher.refresh(links[0])
      }
      await started.wait { $0 }
      running.cancel()
      _ = await running.result
    }
    await report.check("failure-is-thrown", "an error is thrown when there is no fresh link", when: hopeless != nil) {
      guard let hopeless, let fresh = try? await refresher.refresh(hopeless) else { return }
      throw Deviation("for \(hopeless.request.url.redacted) it gave \(fresh.url.redacted)")
    }
    try report.finish()
  }

  private func refresh(_ link: ExpiredLink) async throws {
    let fresh = try await refresher.refresh(link)
    try expect(fresh.url.scheme?.isEmpty == false, "“\(fresh.url.redacted)” has no scheme: it cannot be opened")
    try verify(link, fresh)
  }
}
