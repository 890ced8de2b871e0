internal import Foundation

// Starting downloads by hand.
extension Engine {
  /// Starts a download even if a limit is reached, and preempts other downloads if requested.
  /// - Returns: Whether the download runs now.
  nonisolated func start(_ id: DownloadID, preempting preemption: Preemption) async throws -> Bool {
    let started = try await context.mailbox.call(for: [id]) { _ in
      { state, _ in state.start(id, preempting: preemption) }
    }
    for run in started.victims { try await run.waitForEndUnlessCancelled() }
    return started.isRunning
  }
}

private struct Started: Sendable {
  var isRunning = true
  /// The preempted runs.
  var victims: [Run] = []
}

extension EngineState {
  fileprivate mutating func start(_ id: DownloadID, preempting preemption: Preemption) -> NextAction<Started> {
    if let run = slots.runs[id] {
      guard slots.candidate(of: run) == nil || run.stopReason != nil else { return .over(Started()) }
      return .wait(for: [run], comesBeforeLeases: true) { state, _ in state.start(id, preempting: preemption) }
    }
    return .job { context, changes in
      _ = try await context.existing(id)
      // Before anything changes: nothing starts while the storage cannot tell its location.
      let location = try context.storage.location
      // A paused or failed download becomes waiting, and a download that waits for a time becomes due.
      let isResumed = try await context.transition(.ids([id]), .resume, &changes).count > 0
      return { state, instant in
        guard isResumed, !state.mode.isSuspended, !state.mode.isStopping else {
          return .over(Started(isRunning: false))
        }
        return try state.leaseByHand(id, of: location, preempting: preemption, at: instant)
      }
    }
  }

  private mutating func leaseByHand(
    _ id: DownloadID, of location: String?, preempting preemption: Preemption, at instant: Instant
  ) throws -> NextAction<Started> {
    // Its answer comes first.
    if outbox.failed != nil, let error = outbox.lastError { throw error }
    let rules = gates.rules
    var request = leaseRequest(scope: .ids([id]), at: instant) { rules.areOpen(for: $0) ? .take : .skip }
    request.location = location
    request.isByHand = true
    let exchange = outbox.begin([], request)
    return .job { [request] context, _ in
      let answer = await exchange.perform(in: context)
      return { state, instant in
        guard let record = try state.leased(by: answer) else {
          state.publishLater([id])
          return .over(Started(isRunning: false))
        }
        return .over(
          Started(
            victims: state.startByHand(
              record, leasedAt: request.instant, for: request.location, preempting: preemption, at: instant)))
      }
    }
  }

  /// The download that an exchange of its own has leased.
  private mutating func leased(by answer: Exchange.Answer) throws -> DownloadRecord? {
    switch answer.result {
    case .success(let exchange):
      outbox.succeeded()
      return exchange.leased.first
    case .failure(let error):
      // A downloader that stops gives back what it holds.
      if mode.isStopping {
        outbox.succeeded()
      } else {
        outbox.fail(answer.exchange, DownloadError(error, as: .ledger, stage: context.ledgerName))
      }
      restLedger()
      throw error
    }
  }
}
