import DownpipeCore
import DownpipeLinks
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct LinksConformanceTests {
  private struct NoLink: Error {}

  private let stage = RefreshURL { expired in
    guard expired.request.id != "gone" else { throw NoLink() }
    return FreshLink(expired.request.url.appending(component: expired.request.id.rawValue))
  }

  private func dead(_ id: DownloadID) throws -> ExpiredLink {
    ExpiredLink(
      request: try DownloadRequest("https://example.org/dead", id: id),
      error: DownloadError(.httpStatus, "forbidden", httpStatus: 403))
  }

  @Test func refreshes() async throws {
    try await LinkRefresherConformance(stage, dead("a"), and: dead("b"), hopeless: dead("gone")) { expired, fresh in
      if fresh.url.lastPathComponent != expired.request.id.rawValue { throw NoLink() }
    }.run()
  }

  @Test func intercepts() async throws { try await RequestInterceptorConformance(stage).run() }
}
