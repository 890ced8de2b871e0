internal import Foundation

// Starting by hand.
extension Engine {
  /// Starts a download whatever the limits say, and sends back others if asked to.
  /// - Returns: whether it runs now.
  func start(_ id: DownloadID, preempting preemption: Preemption) async throws -> Bool {
    try checkOpen()
    while true {
      let turn: Start = try await context.mailbox.perform { engine in
        if let run = engine.slots.runs[id] {
          let isRunning = engine.slots.candidate(of: run) != nil && run.stopReason == nil
          return isRunning ? .over(isRunning: true, victims: []) : .wait(for: run)
        }
        // What was paused or has failed waits first; what waits for a time is due.
        guard try await engine.transition(id, .resume) else { return .over(isRunning: false, victims: []) }
        return try await engine.leaseByHand(id, preempting: preemption)
      }
      switch turn {
      case .over(let isRunning, let victims):
        for run in victims { try await run.endUnlessCancelled() }
        return isRunning
      case .wait(let run): try await run.endUnlessCancelled()
      }
    }
  }

  private enum Start: Sendable {
    case over(isRunning: Bool, victims: [Run])
    case wait(for: Run)
  }

  private func leaseByHand(_ id: DownloadID, preempting preemption: Preemption) async throws -> Start {
    let rules = gates.rules
    guard !mode.isSuspended, !mode.isStopping else { return .over(isRunning: false, victims: []) }
    let now = time.date
    let leased = try await store.lease(
      LeaseRequest(
        now: now, until: now.addingTimeInterval(options.lease / .seconds(1)), scope: .ids([id]),
        location: context.storage.location
      ) { candidate in
        rules.contains { if case .closed = $0.verdict(for: candidate) { true } else { false } } ? .skip : .take
      })
    guard let record = leased.first else {
      await publishStates(of: [id])
      return .over(isRunning: false, victims: [])
    }
    let victims = victims(of: preemption, for: record.candidate)
    start(record, isForced: true)
    for run in victims { run.stop(.limit("made room for “\(id)”, which was started by hand")) }
    return .over(isRunning: true, victims: victims)
  }

  private func victims(of preemption: Preemption, for candidate: Candidate) -> [Run] {
    switch preemption {
    case .none: []
    case .oldest: slots.victims(pipeline.limits, for: candidate, among: slots.byStart)
    case .lowestPriority: slots.victims(pipeline.limits, for: candidate, among: slots.ranked.reversed())
    }
  }
}
