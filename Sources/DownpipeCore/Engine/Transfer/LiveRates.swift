internal import Synchronization

/// The rate policies in effect, with their sessions. Transfers ask them on the transport's threads.
final class LiveRates: Sendable {
  private struct Limit: Sendable {
    let id: String
    let session: any RateSession
    /// Whether it needs shares that the ledger leases.
    let isShared: Bool

    init(_ policy: any RatePolicy, _ time: any TimeSource) {
      (id, session, isShared) = (policy.id, policy.start(time: time), policy.sharesRates)
    }
  }

  private let time: any TimeSource
  private let limits: Mutex<[Limit]>
  /// Spares transfers the mutex while there is no limit.
  private let isEmpty: Atomic<Bool>
  /// Whether transfers have used shared rates since the last look.
  private let demand = Monitor(false)
  /// Spares transfers the monitor while it knows.
  private let isDemandKnown = Atomic(false)

  init(_ policies: [any RatePolicy], time: any TimeSource) {
    self.time = time
    limits = Mutex(policies.map { Limit($0, time) })
    isEmpty = Atomic(policies.isEmpty)
  }

  /// Whether there is a policy.
  var isLimited: Bool { !isEmpty.load(ordering: .acquiring) }

  /// Whether a policy may pause a transfer.
  func limit(_ transfer: TransferContext) -> Bool { limits.withLock { $0 }.contains { $0.session.limits(transfer) } }

  /// Replaces the policy with the same id, or adds it.
  func replace(_ policy: any RatePolicy) {
    change { $0.set(Limit(policy, time), by: \.id) }
  }

  func remove(id: String) { change { $0.removeAll { $0.id == id } } }

  private func change<Result: Sendable>(_ body: (inout [Limit]) -> Result) -> Result {
    limits.withLock { limits in
      defer { isEmpty.store(limits.isEmpty, ordering: .releasing) }
      return body(&limits)
    }
  }

  /// The longest pause that a policy asks for.
  func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
    let limits = limits.withLock { $0 }
    var longest = Duration.zero
    var isShared = false
    for limit in limits {
      longest = max(longest, limit.session.pause(after: bytes, of: transfer, at: now))
      isShared = isShared || limit.isShared
    }
    if isShared { noteDemand() }
    return longest
  }

  // MARK: Shared rates

  /// The wants of a session, under keys that are its policy's own.
  struct Wants: Sendable {
    let session: any RateSession
    let wants: [RateWant]
  }

  /// Whether a policy shares its rates with other downloaders.
  var isShared: Bool { limits.withLock { $0.contains(where: \.isShared) } }

  private func noteDemand() {
    guard !isDemandKnown.load(ordering: .relaxed), !isDemandKnown.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    demand.update { $0 = true }
  }

  /// Waits until transfers use shared rates, or returns at once if they have done so since the last call.
  /// - Throws: `CancellationError`.
  func waitForDemand() async throws {
    try await demand.wait { $0 }
    demand.update { $0 = false }
    // Last: a use that is not told to the monitor has been noted by the session before, which is asked after this.
    isDemandKnown.store(false, ordering: .sequentiallyConsistent)
  }

  /// What the policies that share rates want of the ledger now.
  func wants(at now: Duration) -> [Wants] {
    limits.withLock { $0 }.filter(\.isShared).compactMap { limit in
      let wants = limit.session.wants(at: now)
      guard !wants.isEmpty else { return nil }
      return Wants(
        session: limit.session,
        wants: wants.map { want in
          var want = want
          want.key = "\(limit.id) \(want.key)"
          return want
        })
    }
  }
}

/// The pace of one transfer of a run. Rate policies that are replaced meanwhile take effect at once, and so do changes of the
/// request.
final class RunPace: Sendable {
  private let run: Run
  private let known = Mutex<(request: DownloadRequest, transfer: TransferContext)?>(nil)

  init(_ run: Run) { self.run = run }

  func pause(after bytes: Int) -> Duration {
    guard run.context.rates.isLimited else { return .zero }
    let request = run.read { $0.request }
    let transfer = known.withLock { known in
      // Requests that were copied from each other are compared at once.
      if let known, known.request == request { return known.transfer }
      // Parses the URL, which downloads without a rate limit must not pay for.
      let transfer = run.read { $0.transferContext }
      known = (request, transfer)
      return transfer
    }
    let pause = run.context.rates.pause(after: bytes, of: transfer, at: run.context.time.now)
    if pause > .zero { run.wasPaced.store(true, ordering: .relaxed) }
    return pause
  }
}

extension DownloadRecord {
  /// What rate and segment policies are told of the download.
  var transferContext: TransferContext { TransferContext(id, candidate, metadata: request.metadata) }
}
