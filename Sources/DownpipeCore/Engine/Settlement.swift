internal import Foundation
internal import Synchronization

/// Puts a download into the state that follows its attempt: in the ledger first, then in the open.
struct Settlement: Sendable {
  let attempt: Attempt
  let engine: Engine

  private var run: Run { attempt.run }

  /// Settles the outcome of an attempt; `nil` when it was stopped before it began.
  func settle(_ result: Result<Artifact, any Error>?) async {
    run.update { $0.bytesFetched += run.fetched.exchange(0, ordering: .relaxed) }
    let state: DownloadState
    switch result {
    case .success(let artifact):
      state = await finish(artifact)
    case .failure(let error) where run.stopSignal.reason == nil:
      state = await fail(DownloadError(error, as: .processing))
    case .failure, nil:
      state = await stop(for: run.stopSignal.reason ?? .shutdown)
    }
    attempt.announce(state: state)
    if state == .waiting(.elsewhere), (try? await attempt.store.record(run.id)) == .some(nil) {
      // Not elsewhere: gone.
      attempt.hub.finish(run.id)
    }
    await engine.settled(run)
  }

  /// What the lifecycle says an event leads to; the phase is set, the effects are the caller's.
  private func advance(_ event: Lifecycle.Event, _ change: (inout DownloadRecord) -> Void = { _ in }) -> Set<
    Lifecycle.Effect
  > {
    run.update { record in
      guard let next = Lifecycle.next(record.phase, event) else { return [] }
      record.phase = next.phase
      record.notBefore = nil
      change(&record)
      return next.effects
    }
  }

  private func finish(_ artifact: Artifact) async -> DownloadState {
    // A file that was there already has skipped the transfer.
    if run.record.phase == .transferring { _ = advance(.bytesComplete) }
    let effects = advance(.stepsComplete) { record in
      record.error = nil
      record.consecutiveFailures = 0
      record.checkpoint.isComplete = true
      record.steps.artifact = attempt.stored(artifact)
      record.steps.note = nil
    }
    if let error = await save([.state, .steps, .checkpoint]) { return Self.state(whenUnsaved: error) }
    // What is left of the partial and what the steps left lying is of no use to anybody now.
    if effects.contains(.removePartial) { try? await attempt.storage.removePartial(run.key) }
    return .finished(artifact)
  }

  private func fail(_ error: DownloadError) async -> DownloadState {
    let error = error.located(stage: nil, url: run.record.request.url, attempt: run.record.attempts)
    attempt.announce(.attemptFailed(error))
    let failures = run.update { record -> Int in
      let progressed =
        record.checkpoint.ranges.prefixLength > run.bytesAtStart && !Self.startsAgain.contains(error.code)
      record.consecutiveFailures = progressed ? 1 : record.consecutiveFailures + 1
      record.error = error
      return record.consecutiveFailures
    }
    let now = attempt.options.time.date
    let decision = attempt.pipeline.retry.decide(
      Failure(
        error: error, consecutive: failures, attempts: run.record.attempts, random: attempt.options.random(), now: now)
    )
    let due: Date?
    switch decision {
    case .resume(let delay):
      due = now.addingTimeInterval(delay / .seconds(1))
    case .restart(let delay):
      due = now.addingTimeInterval(delay / .seconds(1))
      if let error = await dropBytes() { return Self.state(whenUnsaved: error) }
    case .giveUp:
      due = nil
    }
    _ = advance(due == nil ? .failedForGood : .failedForNow) { $0.notBefore = due }
    if let error = await save([.state, .checkpoint, .steps]) { return Self.state(whenUnsaved: error) }
    return due.map { .waiting(.retry(at: $0, after: error)) } ?? .failed(error)
  }

  /// Failures after which the bytes are fetched again: the new bytes are no progress.
  private static let startsAgain: Set<DownloadError.Code> = [
    .contentChanged, .wrongRange, .wrongContentCoding, .digestMismatch,
  ]

  /// Lets go of the bytes on disk: the ledger first, so that it never claims what is gone.
  private func dropBytes() async -> DownloadError? {
    run.update { record in
      record.checkpoint = Checkpoint()
      record.steps = StepLog()
    }
    run.received.store(0, ordering: .relaxed)
    if let error = await save([.checkpoint, .steps]) { return error }
    try? await attempt.storage.removePartial(run.key)
    return nil
  }

  private func stop(for reason: StopReason) async -> DownloadState {
    let state: DownloadState
    let event: Lifecycle.Event
    switch reason {
    case .gate(let what): (state, event) = (.waiting(.gate(what)), .suspended)
    case .limit(let what): (state, event) = (.waiting(.limit(what)), .suspended)
    case .shutdown: (state, event) = (.waiting(.turn), .suspended)
    case .suspend: (state, event) = (.waiting(.suspended), .suspended)
    case .pause: (state, event) = (.paused, .pause)
    case .cancel, .remove: (state, event) = (.cancelled, .cancel)
    case .lostOwnership: return .waiting(.elsewhere)
    }
    let effects = advance(event) { record in
      record.error = nil
      if event == .cancel {
        record.checkpoint = Checkpoint()
        record.steps = StepLog()
      }
    }
    if let error = await save([.state, .checkpoint, .steps]) { return Self.state(whenUnsaved: error) }
    if effects.contains(.removePartial) { try? await attempt.storage.removePartial(run.key) }
    return state
  }

  /// Saves, and reports a ledger that fails; the lease gives the download back in time.
  private func save(_ fields: RecordFields) async -> DownloadError? {
    do {
      try await attempt.save(fields)
      return nil
    } catch {
      let error = DownloadError(error, as: .ledger)
      if error.code != .notOwner { attempt.announce(.attemptFailed(error)) }
      return error
    }
  }

  /// What to say when the ledger could not be told.
  private static func state(whenUnsaved error: DownloadError) -> DownloadState {
    error.code == .notOwner ? .waiting(.elsewhere) : .failed(error)
  }
}
