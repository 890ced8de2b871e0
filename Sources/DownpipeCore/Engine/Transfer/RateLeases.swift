internal import Foundation

/// Leases shares of the rates that all downloaders of the ledger share, while transfers use them.
struct RateLeases: Sendable {
  let rates: LiveRates
  let store: any LedgerStore
  let time: any TimeSource

  /// How long a share is valid among few downloaders: longer than a short outage of a database, and short for those who wait
  /// for the share of one that has ended.
  private static let validity: Duration = .seconds(5)
  /// The time between two looks at what the policies want.
  private static let interval: Duration = .milliseconds(100)
  /// The time after a failure.
  private static let rest: Duration = .seconds(1)

  /// Leases until the task is cancelled. While nothing is transferred it does nothing.
  func keep() async {
    while (try? await rates.waitForDemand()) != nil {
      let isAnswered = await lease()
      let pause = isAnswered ? Self.interval : Self.rest
      guard (try? await time.sleep(for: pause, purpose: .rates)) != nil else { return }
    }
  }

  /// - Returns: `false` if the ledger has failed.
  private func lease() async -> Bool {
    // Before the ledger is asked, however long that takes: it may lease a share to others when this one has expired.
    let asked = time.now
    let limits = rates.wants(at: asked)
    guard !limits.isEmpty else { return true }
    let wants = limits.flatMap(\.wants)
    guard let shares = try? await shares(wants), shares.count == wants.count else { return false }
    var rest = shares[...]
    for limit in limits {
      limit.session.take(Array(rest.prefix(limit.wants.count)), askedAt: asked, at: time.now)
      rest = rest.dropFirst(limit.wants.count)
    }
    return true
  }

  private func shares(_ wants: [RateWant]) async throws -> [RateShare] {
    guard store.leasesRates else {
      // Of a policy that has replaced another one: it holds for this downloader.
      return wants.map { RateShare(bytesPerSecond: $0.rate.bytesPerSecond, validity: Self.validity) }
    }
    return try await store.leaseRates(wants, for: Self.validity, at: time.date)
  }
}
