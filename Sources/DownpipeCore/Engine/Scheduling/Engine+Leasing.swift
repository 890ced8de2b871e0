internal import Foundation
internal import Synchronization

// Runs come and go: outcomes are put into the ledger and downloads leased, in one exchange after the other.
extension Engine {
  // MARK: Outcomes

  /// The work of a run is over: its slot is free, and its outcome goes into the next exchange.
  func take(_ outcome: Outcome, of run: Run, in group: inout DiscardingTaskGroup) {
    slots.free(run)
    mode.mayLease = true
    if case .notOwned = outcome { return abandon(run, in: &group) }
    if case .published = outcome {
      slots.succeeded()
      context.furthest.forget(run.id)
    }
    if case .failed(_, .wait(for: .descriptors, _)) = outcome { slots.ranOutOfDescriptors() }
    let now = time.date
    let hasRefresher = run.pipeline.refresher != nil
    let state = run.update { record in
      record.bytesFetched += run.fetched.exchange(0, ordering: .relaxed)
      return outcome.apply(to: &record, stored: run.stored, hasRefresher: hasRefresher, now: now)
    }
    outbox.append(Exchange.Settling(run: run, state: state))
  }

  /// A run that has lost its lease: what is left to do is to find out whether its download was removed.
  private func abandon(_ run: Run, in group: inout DiscardingTaskGroup) {
    slots.free(run)
    let context = context
    group.addTask {
      // Not elsewhere: gone, and with it its bytes.
      let isGone = (try? await context.store.record(run.id)) == .some(nil)
      if isGone { try? await context.storage.removePartial(run.key) }
      context.mailbox.post(abandoned: run, isGone: isGone)
    }
  }

  /// A run is over, and the ledger knows.
  func finish(_ run: Run) async {
    slots.remove(run)
    run.hasEnded()
    guard stages.hasRetired else { return }
    for session in stages.takeIdle(oldest: slots.runs.values.map(\.stages.epoch).min()) { await session.stop() }
  }

  // MARK: The exchange

  /// Writes outcomes into the ledger and leases what may run, unless an exchange is under way.
  func exchange() {
    guard !outbox.isExchanging else { return }
    let request = leaseRequest()
    guard request != nil || (!outbox.waiting.isEmpty && !ledgerNeedsRest) else { return }
    // An exchange that only saves leaves what may be leased to the next one.
    if request != nil { mode.mayLease = false }
    mode.ledgerRests = false
    outbox.begin(request, in: context)
  }

  private func leaseRequest() -> LeaseRequest? {
    guard mode.mayLease, !mode.isSuspended, !mode.isStopping, !ledgerNeedsRest, !gates.isClosedForAll,
      outbox.waiting.count < Self.mostUnsaved
    else { return nil }
    let selector = LeaseSelector(policies: pipeline.limits, rules: gates.rules, slots: slots)
    return leaseRequest(scope: options.scope, selector.select)
  }

  /// A lease of downloads that are due now, for the lease's usual length.
  func leaseRequest(
    scope: LeaseScope, _ select: @escaping @Sendable (Candidate) -> LeaseSelection
  ) -> LeaseRequest {
    // The timer of a due time is right to the microsecond, and so is what counts as due.
    let now = time.date.addingTimeInterval(1e-6)
    return LeaseRequest(
      now: now, until: now.addingTimeInterval(options.lease / .seconds(1)), scope: scope,
      location: context.storage.location, select: select)
  }

  /// So many outcomes may wait for a ledger that fails, beside the runs that have a slot.
  private static let mostUnsaved = 64

  /// After a failure the ledger is asked again in a second, by the timer.
  private var ledgerNeedsRest: Bool { mode.ledgerRests && !mode.isStopping }

  /// The ledger has answered.
  func take(_ answer: Exchange.Answer, in group: inout DiscardingTaskGroup) async {
    waits.lastLook = answer.lookedAt ?? waits.lastLook
    switch answer.result {
    case .success(let exchange):
      outbox.succeeded()
      if !answer.settling.isEmpty || !exchange.leased.isEmpty { reasons.mayHaveChanged = true }
      // Before the states are told that announce them: what is due next has its timer.
      for settling in answer.settling { arm(settling.run.read { $0.notBefore }, in: &group) }
      for (settling, isSaved) in zip(answer.settling, exchange.saved) {
        if isSaved { await settle(settling) } else { abandon(settling.run, in: &group) }
      }
      for record in exchange.leased { start(record) }
    case .failure(let error):
      let error = DownloadError(error, as: .ledger, stage: context.ledgerName)
      if mode.isStopping {
        // What the ledger does not take is found by the next start.
        outbox.succeeded()
        for settling in answer.settling { await settle(settling) }
        return
      }
      for settling in answer.settling where settling.run.status.state != .waiting(.turn) {
        settling.run.announce(.attemptFailed(error))
        settling.run.announce(state: .waiting(.turn))
      }
      outbox.failed(answer.settling, error)
      mode.ledgerRests = true
      mode.mayLease = true
    }
  }

  /// An outcome is in the ledger.
  private func settle(_ settling: Exchange.Settling) async {
    let run = settling.run
    if run.stopReason == .remove {
      // Done here, so that it is done whatever has become of the caller.
      await removeRecord(of: run)
    } else {
      run.announce(state: settling.state)
    }
    if hub.isWatched(run.id) { reasons.note(run.id, run.read { $0.candidate }, settling.state) }
    let (notBefore, awaited) = run.read { ($0.notBefore, $0.awaited) }
    if run.state.withLock({ $0.mayHoldBytes }), run.read({ $0.checkpoint.ranges.isEmpty }) {
      try? await context.storage.removePartial(run.key)
    }
    if notBefore != nil { waits.mayHaveDelayed = true }
    await finish(run)
    // Last: a disk that does not answer holds up no other.
    if awaited != nil || waits.isAnythingMissing { await noteMissing(of: run) }
    if case .finished = settling.state { await makeDescriptorsDue() }
    if slots.isEmpty { context.mailbox.wake() }
  }

  /// A run that was ended by a removal has ended: its download goes.
  private func removeRecord(of run: Run) async {
    guard let records = try? await store.remove(.ids([run.id]), limit: 1), !records.isEmpty else {
      // The caller tries again, or it stays as what it is now.
      return run.announce(state: .cancelled)
    }
    run.wasRemoved = true
    try? await cleanUp(after: records, deletingFiles: false)
  }

  /// Begins the work on a download that has just been leased.
  func start(_ record: DownloadRecord, isForced: Bool = false) {
    let run = Run(record, stages.current, context)
    reasons.forget(record.id)
    // A run whose lease was lost without its noticing: it has to be gone before its bytes are touched again.
    let earlier = slots.insert(run, isForced: isForced)
    earlier?.stop(.lostLease)
    if mode.isStopping { run.stop(.shutdown) } else if mode.isSuspended { run.stop(.suspend) }
    run.start(after: earlier)
  }

  // MARK: Limits

  /// Admits those that run anew, the best rank first; those left over go back to waiting.
  func enforceLimits() {
    var admitted = RunningDownloads()
    let limits = pipeline.limits
    for run in slots.ranked {
      guard let candidate = slots.candidate(of: run) else { continue }
      if let refusal = limits.refusal(candidate, beside: admitted) {
        run.stop(.limit(refusal))
      } else {
        admitted.insert(candidate)
      }
    }
  }
}
