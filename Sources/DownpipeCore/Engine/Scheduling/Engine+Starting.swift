internal import Foundation

// Starting downloads by hand.
extension Engine {
  /// Starts a download even if a limit is reached, and preempts other downloads if requested.
  /// - Returns: Whether the download runs now.
  func start(_ id: DownloadID, preempting preemption: Preemption) async throws -> Bool {
    try checkOpen()
    let started: Started = try await takeTurns(for: id) { engine in
      if let run = engine.slots.runs[id] {
        let isRunning = engine.slots.candidate(of: run) != nil && run.stopReason == nil
        return isRunning ? .over(Started()) : .wait(for: run)
      }
      // A paused or failed download becomes waiting, and a download that waits for a time becomes due.
      guard try await engine.transition(id, .resume) else { return .over(Started(isRunning: false)) }
      return .over(try await engine.leaseByHand(id, preempting: preemption))
    }
    for run in started.victims { try await run.endUnlessCancelled() }
    return started.isRunning
  }

  private struct Started: Sendable {
    var isRunning = true
    /// The preempted runs.
    var victims: [Run] = []
  }

  private func leaseByHand(_ id: DownloadID, preempting preemption: Preemption) async throws -> Started {
    let rules = gates.rules
    guard !mode.isSuspended, !mode.isStopping else { return Started(isRunning: false) }
    let leased: [DownloadRecord]
    do {
      leased = try await store.lease(
        leaseRequest(scope: .ids([id])) { candidate in rules.areOpen(for: candidate) ? .take : .skip })
    } catch {
      mode.mayHoldUnknown = true
      throw error
    }
    guard let record = leased.first else {
      publishLater([id])
      return Started(isRunning: false)
    }
    let victims = victims(of: preemption, for: record.candidate)
    stages.limits.started(record.candidate, at: time.now)
    start(record, isForced: true)
    for run in victims { run.stop(.limit("preempted by “\(id)”, which was started by hand")) }
    return Started(victims: victims)
  }

  private func victims(of preemption: Preemption, for candidate: Candidate) -> [Run] {
    switch preemption {
    case .none: return []
    case .oldest:
      learnSizes()
      return slots.victims(stages.limits, for: candidate, among: slots.byStart, at: time.now)
    case .lowestPriority:
      rankRuns()
      return slots.victims(stages.limits, for: candidate, among: slots.ranked.reversed(), at: time.now)
    }
  }
}
