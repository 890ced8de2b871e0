internal import Synchronization

/// The rate policies in effect, with their sessions. Transfers ask them on the transport's threads.
final class LiveRates: Sendable {
  private struct Limit: Sendable {
    let id: String
    let session: any RateSession
  }

  private let time: any TimeSource
  private let limits: Mutex<[Limit]>
  /// Spares transfers the mutex while there is no limit.
  private let isEmpty: Atomic<Bool>

  init(_ policies: [any RatePolicy], time: any TimeSource) {
    self.time = time
    limits = Mutex(policies.map { Limit(id: $0.id, session: $0.start(time: time)) })
    isEmpty = Atomic(policies.isEmpty)
  }

  /// Whether there is a policy.
  var isLimited: Bool { !isEmpty.load(ordering: .acquiring) }

  /// Replaces the policy with the same id, or adds it.
  func replace(_ policy: any RatePolicy) {
    change { $0.set(Limit(id: policy.id, session: policy.start(time: time)), by: \.id) }
  }

  /// - Returns: `false` if there is no such policy.
  func remove(id: String) -> Bool {
    change { limits in
      let count = limits.count
      limits.removeAll { $0.id == id }
      return limits.count < count
    }
  }

  private func change<Result: Sendable>(_ body: (inout [Limit]) -> Result) -> Result {
    limits.withLock { limits in
      defer { isEmpty.store(limits.isEmpty, ordering: .releasing) }
      return body(&limits)
    }
  }

  /// The longest pause that a policy asks for.
  func pause(after bytes: Int, of id: DownloadID, _ candidate: Candidate, at now: Duration) -> Duration {
    let limits = limits.withLock { $0 }
    var longest = Duration.zero
    for limit in limits { longest = max(longest, limit.session.pause(after: bytes, of: id, candidate, at: now)) }
    return longest
  }
}

/// The pace of one transfer of a run. Rate policies that are replaced meanwhile take effect at once.
final class RunPace: Sendable {
  private let run: Run
  private let candidate = Mutex<Candidate?>(nil)

  init(_ run: Run) { self.run = run }

  func pause(after bytes: Int) -> Duration {
    guard run.context.rates.isLimited else { return .zero }
    let candidate = candidate.withLock { candidate in
      // Parses the URL, which downloads without a rate limit must not pay for.
      let known = candidate ?? run.read { $0.candidate }
      candidate = known
      return known
    }
    let pause = run.context.rates.pause(after: bytes, of: run.id, candidate, at: run.context.time.now)
    if pause > .zero { run.wasPaced.store(true, ordering: .relaxed) }
    return pause
  }
}
