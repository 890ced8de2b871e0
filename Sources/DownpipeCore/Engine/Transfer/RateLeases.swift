internal import Foundation

/// Leases shares of the rates that all downloaders of the ledger share, while transfers use them.
struct RateLeases: Sendable {
  let rates: LiveRates
  let store: any LedgerStore
  let time: any TimeSource
  /// Tells watchers why transfers pause.
  let tell: @Sendable (DownloadError) async -> Void

  /// How long a share is valid among few downloaders: longer than a short outage of a database, and short for those who wait
  /// for the share of one that has ended.
  private static let validity: Duration = .seconds(5)
  /// The time between two looks at what the policies want.
  private static let interval: Duration = .milliseconds(100)
  /// The time after a failure.
  private static let rest: Duration = .seconds(1)

  /// Leases until the task is cancelled. While nothing is transferred it does nothing.
  func keep() async {
    var failures = 0
    while (try? await rates.waitForDemand()) != nil {
      let failure = await lease()
      failures = failure == nil ? 0 : failures + 1
      // A single failure passes before the shares expire.
      if let failure, failures == 2, !Task.isCancelled { await tell(failure) }
      let pause = failure == nil ? Self.interval : Self.rest
      guard (try? await time.sleep(for: pause, purpose: .rates)) != nil else { return }
    }
  }

  /// - Returns: Why the ledger has leased no shares; `nil` if it has.
  private func lease() async -> DownloadError? {
    // Before the ledger is asked, however long that takes: it may lease a share to others when this one has expired.
    let asked = time.now
    let limits = rates.wants(at: asked)
    guard !limits.isEmpty else { return nil }
    let wants = limits.flatMap(\.wants)
    let shares: [RateShare]
    do { shares = try await self.shares(wants) } catch {
      let cause = DownloadError(error, as: .ledger)
      return DownloadError(
        .ledger,
        "transfers pause, because the ledger leases no share of a rate that workers have together: \(cause.message)")
    }
    guard shares.count == wants.count else {
      return DownloadError(.ledger, "the ledger has leased other shares of rates than it was asked for")
    }
    var rest = shares[...]
    for limit in limits {
      limit.session.take(Array(rest.prefix(limit.wants.count)), askedAt: asked, at: time.now)
      rest = rest.dropFirst(limit.wants.count)
    }
    return nil
  }

  private func shares(_ wants: [RateWant]) async throws -> [RateShare] {
    guard store.leasesRates else {
      // Of a policy that has replaced another one: it holds for this downloader.
      return wants.map { RateShare(bytesPerSecond: $0.rate.bytesPerSecond, validity: Self.validity) }
    }
    return try await store.leaseRates(wants, for: Self.validity, at: time.date)
  }
}
