internal import Foundation
internal import Synchronization

// Outcomes of runs are saved in the ledger, and downloads are leased, in one exchange after the other.
extension Engine {
  // MARK: Outcomes

  /// Takes the outcome of a run: frees its slot, and adds the outcome to the next exchange.
  func take(_ outcome: Outcome, of run: Run) {
    if let candidate = slots.candidate(of: run), let start = slots.start(of: run) {
      stages.limits.ended(candidate, RunEnd(outcome.result, startedAt: start, endedAt: time.now))
    }
    slots.free(run)
    mode.mayLease = true
    if case .notOwned = outcome { return abandon(run) }
    if case .published = outcome {
      slots.succeeded()
      context.furthest.forget(run.id)
    }
    if case .failed(_, .wait(for: .descriptors, _)) = outcome { slots.ranOutOfDescriptors() }
    let now = time.date
    let hasRefresher = run.pipeline.refresher != nil
    let state = run.update { record in
      record.bytesFetched = record.bytesFetched.addingClamped(run.fetched.exchange(0, ordering: .relaxed))
      return outcome.apply(to: &record, stored: run.stored, hasRefresher: hasRefresher, now: now)
    }
    outbox.append(Exchange.Settling(run: run, state: state))
  }

  /// Ends a run that has lost its lease, after deleting the partial of a download that was removed.
  private func abandon(_ run: Run) {
    slots.free(run)
    run.state.withLock { $0.wasRefused = true }
    let context = context
    begin {
      // The record may be of a later download with the same id, whose partial has another key.
      do {
        let record = try await context.store.record(run.id)
        if record?.partialKey != run.key { try await context.storage.removePartial(run.key) }
        // The ledger may have saved the outcome before, and its answer was lost.
        let isSaved = record?.partialKey == run.key && record?.phase == run.read(\.phase)
        if isSaved { run.state.withLock { $0.wasRefused = false } }
      } catch {
        // The bytes are left as an orphan.
      }
      context.mailbox.post(abandoned: run)
    }
  }

  /// Ends runs that have lost their lease, and publishes what the ledger says about their downloads by now. Nothing is
  /// published of a download that has another run: that run publishes its own states.
  func endAbandonedRuns() async {
    let runs = abandoned
    abandoned = []
    for run in runs {
      finish(run)
      if hub.isWatched(run.id) { unpublished.note(run.read { $0.request }) }
    }
  }

  /// Ends a run after its outcome has been saved in the ledger.
  ///
  /// - Parameter state: The state to publish. A watcher that hears of it finds the download without its run, and may add or
  ///   resume it at once.
  func finish(_ run: Run, announcing state: DownloadState? = nil) {
    slots.remove(run)
    reasons.noteChange(of: CollectionOfOne(run.id))
    if let state { run.announce(state: state) }
    run.hasEnded()
    guard stages.hasRetired else { return }
    for session in stages.takeIdle(oldest: slots.runs.values.map(\.stages.epoch).min()) { begin { await session.stop() } }
  }

  // MARK: The exchange

  /// Saves outcomes in the ledger, adds downloads and leases downloads.
  /// - Returns: `false` if there was nothing to do.
  func exchange() async -> Bool {
    let request = leaseRequest()
    guard request != nil || (!outbox.waiting.isEmpty && !ledgerNeedsRest) else {
      guard !additions.isEmpty else { return false }
      await answer(addWaiting())
      return true
    }
    // If this exchange does not lease, the next one has to.
    if request != nil { mode.mayLease = false }
    mode.ledgerRests = false
    let exchange = outbox.begin(request)
    // In a task of its own, which is not cancelled: what has been saved would not be known. The ledger adds meanwhile, in
    // the same transaction if it can.
    let task = context.executors.start { [context] in await exchange.perform(in: context) }
    var added = await addWaiting()
    await take(await task.value, &added)
    await answer(added)
    return true
  }

  private func answer(_ added: Added) async {
    tell(added)
    await publishChanges()
    for answer in added.answers { answer() }
  }

  private func leaseRequest() -> LeaseRequest? {
    selector = nil
    // What is held without the knowledge of this engine would not count for the limits.
    guard mode.mayLease, !mode.isSuspended, !mode.isStopping, !ledgerNeedsRest, !mode.mayHoldUnknown,
      !gates.isClosedForAll, outbox.waiting.count < Self.mostUnsaved
    else { return nil }
    // Read before the rules: a rule that is reported in between begins another epoch.
    let epoch = epoch
    if learnSizes() { reasons.mayHaveChanged = true }
    let selector = LeaseSelector(limits: stages.limits, rules: gates.rules, slots: slots, now: time.now)
    self.selector = selector
    var request = leaseRequest(scope: options.scope, selector.select)
    request.epoch = epoch
    request.order = stages.limits.order
    return request
  }

  /// Changes when the gates or the admission policies decide by other rules.
  private var epoch: Int { gates.reports &+ gates.replacements &+ stages.limits.replacements }

  /// A request to lease downloads that are due now, for the duration in the options.
  func leaseRequest(
    scope: LeaseScope, _ select: @escaping @Sendable (Candidate) -> LeaseSelection
  ) -> LeaseRequest {
    // The timer of a due time has a precision of a microsecond, so the same precision decides what is due.
    let now = time.date.addingTimeInterval(1e-6)
    var request = LeaseRequest(
      now: now, until: now.addingTimeInterval(options.lease / .seconds(1)), scope: scope,
      location: context.storage.location, select: select)
    request.instant = time.now
    return request
  }

  /// The number of outcomes that may wait for a failing ledger before no more downloads are leased.
  private static let mostUnsaved = 64

  /// Lets the ledger rest after a failure; the loop tries again after a while what has failed.
  func restLedger() {
    mode.ledgerRests = true
    context.mailbox.wake()
  }

  /// Whether to wait after a failure of the ledger; a timer ends the wait after a second.
  var ledgerNeedsRest: Bool { mode.ledgerRests && !mode.isStopping }

  /// Takes the answer of the ledger to an exchange.
  /// - Parameter added: The downloads that were added meanwhile.
  private func take(_ answer: Exchange.Answer, _ added: inout Added) async {
    waits.lastLook = answer.lookedAt ?? waits.lastLook
    if answer.hasFailedToLease { mode.mayHoldUnknown = true }
    switch answer.result {
    case .success(let exchange):
      outbox.succeeded()
      if answer.mustLease { mode.mayLease = true }
      if !answer.settling.isEmpty || !exchange.leased.isEmpty { reasons.mayHaveChanged = true }
      if exchange.mayHaveReleasedDelayed { waits.mayHaveDelayed = true }
      // Timers are set before the states with the due times are published.
      for settling in answer.settling { arm(settling.run.read { $0.notBefore }) }
      for (settling, isSaved) in zip(answer.settling, exchange.saved) {
        let id = settling.run.id
        // An addition may have changed it again since the commit.
        let isReopened = exchange.reopened.contains(id) || added.changed.contains(id)
        if isSaved { await settle(settling, isReopened: isReopened) } else { abandon(settling.run) }
      }
      if !exchange.reopened.isEmpty { mode.mayLease = true }
      for record in exchange.leased {
        added.before[record.id] = record.request
        start(record)
      }
      if let dues = selector?.dues { armAdmission(dues) }
    case .failure(let error):
      let error = DownloadError(error, as: .ledger, stage: context.ledgerName)
      if mode.isStopping {
        // The next start finds the downloads whose outcomes could not be saved.
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

  /// Finds out which downloads of the ledger this owner holds, if a failure of the ledger has left that open: those of dead
  /// owners are reclaimed, and those that a lease has taken whose answer was lost are released. Otherwise nothing would work
  /// on them, and commands would take them for those of other processes.
  /// - Throws: The errors of the ledger.
  func clarifyOwnership() async throws {
    if mode.mustReclaim {
      _ = try await store.reclaim(at: time.date)
      mode.mustReclaim = false
    }
    guard mode.mayHoldUnknown else { return }
    let active = try await store.records(DownloadQuery(phases: [.transferring, .processing]))
    for var record in active where record.owner == store.owner && slots.runs[record.id] == nil {
      // The request may have changed since the lease: then this gives up what was done for the earlier one.
      record.apply(.suspended)
      if try await store.save(record, [.state, .checkpoint, .steps], at: time.date) {
        noteChange(of: CollectionOfOne(record.id))
      }
      mode.mayLease = true
    }
    mode.mayHoldUnknown = false
  }

  /// Does again what a failure of the ledger has prevented, unless the ledger rests.
  func recoverFromFailures() async {
    if mode.mustFinishRenaming, !ledgerNeedsRest, !mode.isStopping { await finishRenaming() }
    guard mode.mayHoldUnknown || mode.mustReclaim, !ledgerNeedsRest, !mode.isStopping else { return }
    do { try await clarifyOwnership() } catch {
      mode.ledgerRests = true
      outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
    }
  }

  /// Ends a run whose outcome has been saved.
  ///
  /// - Parameter isReopened: Whether the ledger lets the download wait again, because its request has changed or it was
  ///   added again.
  private func settle(_ settling: Exchange.Settling, isReopened: Bool = false) async {
    let run = settling.run
    let isOver: Bool =
      switch settling.state {
      case .finished: !isReopened && !run.isOutdated
      default: !isReopened
      }
    // Done here, so that it is done even if the caller was cancelled.
    // Earlier commands that have waited for the run come first.
    let isRemoved = run.stopReason == .remove && commands.count(for: run.id) < 2
    if isRemoved { await removeRecord(of: run) }
    if run.state.withLock({ $0.mayHoldBytes }), run.read({ $0.checkpoint.ranges.isEmpty }) {
      try? await context.storage.removePartial(run.key)
    }
    let (notBefore, awaited, isHeld) = run.read { ($0.notBefore, $0.awaited, $0.phase == .waiting && !$0.waitsFor.isEmpty) }
    if notBefore != nil { waits.mayHaveDelayed = true }
    if hub.isWatched(run.id), isOver { reasons.note(run.id, run.read { $0.candidate }, settling.state) }
    finish(run, announcing: isOver && !isRemoved ? settling.state : nil)
    // What the outcome was for is not asked for any longer, or the download was told during its run to wait for another
    // one: the ledger has the state. A watcher may have begun after the removal was told, while the run still had a state.
    if !isOver || isHeld || run.wasRemoved { publishLater(CollectionOfOne(run.id)) }
    if !isRemoved, awaited != nil || waits.isAnythingMissing { noteMissing(of: run) }
    if case .finished = settling.state { waits.end(.descriptors) }
    if slots.isEmpty { context.mailbox.wake() }
  }

  /// Starts a run for a leased download.
  func start(_ record: DownloadRecord, isForced: Bool = false) {
    let run = Run(record, stages.current, context)
    reasons.forget(record.id)
    // An earlier run has lost its lease without noticing: it has to end before the partial is opened again.
    let earlier = slots.insert(run, isForced: isForced, at: time.now)
    earlier?.stop(.lostLease)
    if mode.isStopping { run.stop(.shutdown) } else if mode.isSuspended { run.stop(.suspend) }
    // A gate may have closed while the ledger was leasing.
    enforceGates(for: run)
    run.start(after: earlier)
    if options.sabotage == .startsTwice { Run(record, stages.current, context).start(after: nil) }
  }

  // MARK: Limits

  /// Ranks the running downloads by what is known now, such as the size that the server has stated.
  func rankRuns() {
    let ranking = pipeline.ranking
    for run in slots.runs.values {
      run.update { $0.rank = ranking.rank($0.rankingContext) }
      slots.update(run)
    }
  }

  /// Applies the limits to the running downloads in order of rank; downloads beyond a limit go back to waiting.
  func enforceLimits() {
    rankRuns()
    var admitted = RunningDownloads()
    let limits = stages.limits
    let now = time.now
    for run in slots.ranked {
      guard let candidate = slots.candidate(of: run) else { continue }
      if let refusal = limits.stops(candidate, beside: admitted, at: now) {
        run.stop(.limit(refusal))
      } else {
        admitted.insert(candidate)
      }
    }
  }
}
