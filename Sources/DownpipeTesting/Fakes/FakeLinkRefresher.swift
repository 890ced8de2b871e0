public import DownpipeCore

/// A link refresher that calls a closure and records its calls.
///
/// ```swift
/// let refresher = FakeLinkRefresher { expired in FreshLink(fresh) }
/// let downloader = try await Downloader { source; refresher; FakeStorage() }
/// _ = try await downloader.add("https://example.org/film").value
/// #expect(refresher.calls.map(\.error?.httpStatus) == [403])
/// ```
public final class FakeLinkRefresher: LinkRefresher {
  private let asked = Watched<[ExpiredLink]>([])
  private let renew: @Sendable (ExpiredLink) async throws -> FreshLink

  /// Creates a refresher that calls the closure.
  public init(_ renew: @escaping @Sendable (ExpiredLink) async throws -> FreshLink) { self.renew = renew }

  /// The expired links so far, in order.
  public var calls: [ExpiredLink] { asked.value }

  /// Records the call and calls the closure.
  public func refresh(_ expired: ExpiredLink) async throws -> FreshLink {
    asked.update { $0.append(expired) }
    return try await renew(expired)
  }
}
