internal import Foundation
internal import Synchronization

/// Puts a download into the state that follows its attempt: in the ledger first, then in the open.
struct Settlement: Sendable {
  let attempt: Attempt
  let engine: Engine

  private var run: Run { attempt.run }

  /// Settles the outcome of an attempt.
  func settle(_ result: Result<Artifact, any Error>) async {
    run.update { $0.bytesFetched += run.fetched.exchange(0, ordering: .relaxed) }
    let outcome: Outcome
    switch result {
    case .success(let artifact):
      outcome = await finish(artifact)
    case .failure(let error) where run.stopSignal.reason == nil && !Task.isCancelled:
      outcome = await fail(DownloadError(error, as: .processing))
    case .failure:
      outcome = await stop(for: run.stopSignal.reason ?? .shutdown)
    }
    run.letGo()
    switch outcome {
    case .state(let state):
      attempt.announce(state: state)
      await engine.settled(run, unsaved: nil)
    case .unsaved(let error):
      // The engine tells the ledger again, and then everybody else.
      attempt.announce(state: .waiting(.turn))
      await engine.settled(run, unsaved: error)
    case .notOurs:
      attempt.announce(state: .waiting(.elsewhere))
      if (try? await attempt.store.record(run.id)) == .some(nil) {
        // Not elsewhere: gone, and with it its bytes.
        try? await attempt.storage.removePartial(run.key)
        attempt.hub.finish(run.id)
      }
      await engine.settled(run, unsaved: nil)
    }
  }

  /// What came of it.
  private enum Outcome {
    /// The state is in the ledger.
    case state(DownloadState)
    /// The ledger did not take it.
    case unsaved(DownloadError)
    /// Somebody else has taken the download over, or removed it.
    case notOurs
  }

  /// What the lifecycle says an event leads to; the phase is set, the effects are the caller's.
  private func advance(_ event: Lifecycle.Event, _ change: (inout DownloadRecord) -> Void = { _ in }) -> Bool {
    run.update { record in
      guard record.apply(event) else { return false }
      // A link that has not been renewed is as dead as before.
      if record.awaited != .link { record.awaited = nil }
      change(&record)
      return true
    }
  }

  private func finish(_ artifact: Artifact) async -> Outcome {
    // A file that was there already has skipped the transfer.
    if run.read({ $0.phase }) == .transferring { _ = advance(.bytesComplete) }
    let effects = advance(.stepsComplete) { record in
      record.error = nil
      record.consecutiveFailures = 0
      record.repeatedFailures = 0
      record.checkpoint.isComplete = true
      record.steps.artifact = attempt.stored(artifact)
      record.steps.note = nil
    }
    // What is left of the partial and what the steps left lying is of no use to anybody now. Nobody looks at a finished
    // download again, so it goes first; but only while it is held is it certainly nobody else's.
    let isHeld = run.isHolding
    if isHeld, effects {
      try? await attempt.storage.removePartial(run.key)
      run.letGo()
    }
    engine.freePlace(of: run)
    if let failure = await save([.state, .steps, .checkpoint]) { return failure }
    if !isHeld, effects { try? await attempt.storage.removePartial(run.key) }
    return .state(.finished(artifact))
  }

  private func fail(_ error: DownloadError) async -> Outcome {
    let error = error.located(stage: nil, url: run.record.request.url, attempt: run.record.attempts)
    attempt.announce(.attemptFailed(error))
    let hasProgressed = await engine.hasProgressed(run, to: run.record.checkpoint.ranges.prefixLength)
    let failures = run.update { record -> Int in
      let progressed = hasProgressed && !Self.startsAgain.contains(error.code)
      record.consecutiveFailures = progressed ? 1 : record.consecutiveFailures + 1
      record.repeatedFailures = record.error?.code == error.code && !progressed ? record.repeatedFailures + 1 : 1
      record.error = error
      return record.consecutiveFailures
    }
    let now = attempt.options.time.date
    let decision = attempt.pipeline.retry.decide(
      Failure(
        error: error, consecutive: failures, repeated: run.record.repeatedFailures, attempts: run.record.attempts,
        random: attempt.options.random(), now: now))
    var awaited: Awaited?
    var delay: Duration?
    switch decision {
    case .resume(let wait):
      delay = wait
    case .restart(let wait):
      delay = wait
      if let failure = await dropBytes() {
        _ = advance(.failedForNow)
        return failure
      }
    case .wait(let what, let wait):
      (awaited, delay) = (what, wait)
      // What is missing is not the server's fault: no attempt is counted for it.
      run.update { $0.consecutiveFailures = max(0, failures - 1) }
    case .refresh(let wait) where attempt.pipeline.refresher != nil:
      (awaited, delay) = (.link, wait)
    case .refresh, .giveUp:
      // These bytes are proved to be wrong: whoever resumes wants others.
      if error.code == .digestMismatch, let failure = await dropBytes() {
        _ = advance(.failedForNow)
        return failure
      }
    }
    let due = delay.map { now.addingTimeInterval($0 / .seconds(1)) }
    _ = advance(due == nil ? .failedForGood : .failedForNow) { record in
      record.notBefore = due
      if let awaited { record.awaited = awaited }
    }
    if var failure = await save([.state, .checkpoint, .steps]) {
      if case .unsaved = failure, error.code == .noSpace, await Transfer(attempt: attempt).makeRoomForTheLedger() {
        guard let second = await save([.state, .checkpoint, .steps]) else { return .state(state(due, error)) }
        failure = second
      }
      return failure
    }
    return .state(state(due, error))
  }

  /// The state after a failure, which is in the record already.
  private func state(_ due: Date?, _ error: DownloadError) -> DownloadState {
    due.map { .waiting(WaitingReason(run.record.awaited, until: $0, after: error)) } ?? .failed(error)
  }

  /// Failures after which the bytes are fetched again: the new bytes are no progress.
  private static let startsAgain: Set<DownloadError.Code> = [
    .contentChanged, .sizeChanged, .digestMismatch,
  ]

  /// Lets go of the bytes on disk: the ledger first, so that it never claims what is gone.
  private func dropBytes() async -> Outcome? {
    run.forgetBytes()
    if let failure = await save([.checkpoint, .steps]) { return failure }
    try? await attempt.storage.removePartial(run.key)
    return nil
  }

  private func stop(for reason: StopReason) async -> Outcome {
    let state: DownloadState
    let event: Lifecycle.Event
    switch reason {
    case .gate(let what): (state, event) = (.waiting(.gate(what)), .suspended)
    case .limit(let what): (state, event) = (.waiting(.limit(what)), .suspended)
    case .shutdown: (state, event) = (.waiting(.turn), .suspended)
    case .suspend: (state, event) = (.waiting(.suspended), .suspended)
    case .pause: (state, event) = (.paused, .pause)
    case .cancel, .remove: (state, event) = (.cancelled, .cancel)
    case .lostOwnership: return .notOurs
    }
    let effects = advance(event) { record in
      record.error = nil
    }
    if let failure = await save([.state, .checkpoint, .steps]) { return failure }
    if effects, event == .cancel { try? await attempt.storage.removePartial(run.key) }
    return .state(state)
  }

  /// Saves, and reports a ledger that fails.
  private func save(_ fields: RecordFields) async -> Outcome? {
    do {
      try await attempt.save(fields)
      return nil
    } catch {
      let error = DownloadError(error, as: .ledger)
      if error.code == .notOwner { return .notOurs }
      attempt.announce(.attemptFailed(error))
      return .unsaved(error)
    }
  }
}
