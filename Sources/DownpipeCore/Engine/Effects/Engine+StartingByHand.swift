internal import Foundation

// Starting downloads by hand.
extension Engine {
  /// Starts a download even if a limit is reached, and preempts other downloads if requested.
  /// - Returns: Whether the download runs now.
  func start(_ id: DownloadID, preempting preemption: Preemption) async throws -> Bool {
    try checkOpen()
    let started: Started = try await takeTurns(for: id) { engine in
      if let run = engine.state.slots.runs[id] {
        let isRunning = engine.state.slots.candidate(of: run) != nil && run.stopReason == nil
        return isRunning ? .over(Started()) : .wait(for: run)
      }
      // A paused or failed download becomes waiting, and a download that waits for a time becomes due.
      guard try await engine.transition(id, .resume) else { return .over(Started(isRunning: false)) }
      return .over(try await engine.leaseByHand(id, preempting: preemption))
    }
    for run in started.victims { try await run.waitForEndUnlessCancelled() }
    return started.isRunning
  }

  private struct Started: Sendable {
    var isRunning = true
    /// The preempted runs.
    var victims: [Run] = []
  }

  private func leaseByHand(_ id: DownloadID, preempting preemption: Preemption) async throws -> Started {
    let rules = state.gates.rules
    guard !state.mode.isSuspended, !state.mode.isStopping else { return Started(isRunning: false) }
    let request = state.leaseRequest(scope: .ids([id]), at: instant) { rules.areOpen(for: $0) ? .take : .skip }
    let leased: [DownloadRecord]
    do {
      leased = try await store.lease(request)
    } catch {
      state.mode.mayHoldUnknown = true
      restLedger()
      throw error
    }
    guard let record = leased.first else {
      publishLater([id])
      return Started(isRunning: false)
    }
    return Started(
      victims: decide { $0.startByHand(record, leasedAt: request.instant, preempting: preemption, at: $1) })
  }
}
