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
      record.bytesFetched = record.bytesFetched.addingSaturated(run.fetched.exchange(0, ordering: .relaxed))
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

  /// Ends a run that has lost its lease, and publishes what the ledger says about its download by now. Nothing is published
  /// if the download has another run: that run publishes its own states.
  func finishAbandoned(_ run: Run) async {
    let id = run.id
    await finish(run)
    guard hub.isWatched(id), slots.runs[id] == nil else { return }
    do {
      let isGone = try await isGone(id)
      guard slots.runs[id] == nil else { return }
      if isGone { hub.publish(removalOf: run.read { $0.request }) } else { await publishStates(of: [id]) }
    } catch {
      // The ledger cannot be read, but it has refused to save the run.
      if slots.runs[id] == nil { run.announce(state: .waiting(.elsewhere)) }
    }
  }

  /// Ends a run after its outcome has been saved in the ledger.
  ///
  /// - Parameter state: The state to publish. A watcher that hears of it finds the download without its run, and may add or
  ///   resume it at once.
  func finish(_ run: Run, announcing state: DownloadState? = nil) async {
    slots.remove(run)
    if let state { run.announce(state: state) }
    run.hasEnded()
    guard stages.hasRetired else { return }
    for session in stages.takeIdle(oldest: slots.runs.values.map(\.stages.epoch).min()) { await session.stop() }
  }

  // MARK: The exchange

  /// Saves outcomes in the ledger and leases downloads.
  /// - Returns: `false` if there was nothing to do.
  func exchange() async -> Bool {
    let request = leaseRequest()
    guard request != nil || (!outbox.waiting.isEmpty && !ledgerNeedsRest) else { return false }
    // If this exchange does not lease, the next one has to.
    if request != nil { mode.mayLease = false }
    mode.ledgerRests = false
    slots.beginReading(outbox.waiting.map(\.run.id))
    let exchange = outbox.begin(request, since: slots.changes)
    // In a task of its own, which is not cancelled: what has been saved would not be known.
    await take(await context.executors.start { [context] in await exchange.perform(in: context) }.value)
    return true
  }

  private func leaseRequest() -> LeaseRequest? {
    selector = nil
    // What is held without the knowledge of this engine would not count for the limits.
    guard mode.mayLease, !mode.isSuspended, !mode.isStopping, !ledgerNeedsRest, !mode.mayHoldUnknown,
      !gates.isClosedForAll, outbox.waiting.count < Self.mostUnsaved
    else { return nil }
    // Read before the rules: a rule that is reported in between begins another version.
    let rulesVersion = rulesVersion
    if learnSizes() { reasons.mayHaveChanged = true }
    let selector = LeaseSelector(limits: stages.limits, rules: gates.rules, slots: slots, now: time.now)
    self.selector = selector
    var request = leaseRequest(scope: options.scope, selector.select)
    request.rulesVersion = rulesVersion
    request.order = stages.limits.order
    return request
  }

  /// Changes when the gates or the admission policies decide by other rules.
  private var rulesVersion: Int { gates.reports &+ gates.replacements &+ stages.limits.replacements }

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
  func take(_ answer: Exchange.Answer) async {
    waits.lastLook = answer.lookedAt ?? waits.lastLook
    let ids = answer.settling.map(\.run.id)
    if answer.hasFailedToLease { mode.mayHoldUnknown = true }
    defer { if options.sabotage != .keepsReaders { slots.endReading(ids) } }
    switch answer.result {
    case .success(let exchange):
      outbox.succeeded()
      if answer.mustLease { mode.mayLease = true }
      if !answer.settling.isEmpty || !exchange.leased.isEmpty { reasons.mayHaveChanged = true }
      if exchange.mayHaveReleasedDelayed { waits.mayHaveDelayed = true }
      // Timers are set before the states with the due times are published.
      for settling in answer.settling { arm(settling.run.read { $0.notBefore }) }
      for (settling, isSaved) in zip(answer.settling, exchange.saved) {
        if isSaved {
          // An addition may have changed it again since the commit.
          let id = settling.run.id
          await settle(
            settling, isReopened: exchange.reopened.contains(id) || slots.hasChanged(id, since: answer.start))
        } else {
          abandon(settling.run)
        }
      }
      if !exchange.reopened.isEmpty { mode.mayLease = true }
      for record in exchange.leased { start(record) }
      let changed = exchange.leased.map(\.id).filter(outbox.changedBeforeStart.contains)
      outbox.changedBeforeStart = []
      if !changed.isEmpty { await takeOverRequests(of: changed, since: [:]) }
      if let dues = selector?.dues { armAdmission(dues) }
    case .failure(let error):
      outbox.changedBeforeStart = []
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

  /// The same in the loop, unless the ledger rests after a failure.
  func clarifyOwnershipLater() async {
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
    reasons.noteChange(of: CollectionOfOne(run.id))
    let (notBefore, awaited, isHeld) = run.read { ($0.notBefore, $0.awaited, !$0.waitsFor.isEmpty) }
    if run.state.withLock({ $0.mayHoldBytes }), run.read({ $0.checkpoint.ranges.isEmpty }) {
      try? await context.storage.removePartial(run.key)
    }
    if notBefore != nil { waits.mayHaveDelayed = true }
    if hub.isWatched(run.id), isOver { reasons.note(run.id, run.read { $0.candidate }, settling.state) }
    await finish(run, announcing: isOver && !isRemoved ? settling.state : nil)
    // A watcher may have begun after its removal was told, while its run still had a state.
    if run.wasRemoved, hub.isWatched(run.id) { await finishEvents(of: [run.id], except: []) }
    // What the outcome was for is not asked for any longer: the ledger has the state.
    if !isOver { await publishStates(of: [run.id]) }
    // This comes last, because a disk that does not answer must not delay other downloads.
    if !isRemoved, awaited != nil || waits.isAnythingMissing { await noteMissing(of: run) }
    if case .finished = settling.state { await makeDescriptorsDue() }
    // The download was told during its run to wait for another one.
    if isHeld, case .waiting = settling.state { await publishStates(of: [run.id]) }
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
