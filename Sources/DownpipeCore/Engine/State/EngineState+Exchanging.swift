internal import Foundation
internal import Synchronization

// From the lease to the outcome: exchanges with the ledger, which save outcomes and lease downloads.
extension EngineState {
  // MARK: Outcomes

  /// Frees the slot of a run whose work has ended, unless it returns at once; the next exchange saves its outcome.
  mutating func endWork(of run: Run, _ outcome: Outcome, at instant: Instant) {
    if let candidate = slots.candidate(of: run), let start = slots.start(of: run) {
      stages.limits.ended(candidate, RunEnd(outcome.result, startedAt: start, endedAt: instant.now))
    }
    if case .stopped(.changed) = outcome, mode.phase == .running, run.read({ $0.waitsFor.isEmpty }) {
      slots.keep(run)
    } else {
      slots.free(run)
    }
    due.insert(.leases)
    judgeMachine(by: run, outcome, at: instant)
    if case .notOwned = outcome { return cleanUp(run) }
    if case .published = outcome {
      slots.succeeded()
      // A destination that was given after the file had its place is ignored, as for a finished download.
      run.state.withLock { $0.record.request.destination = $0.request.destination }
    }
    if case .failed(_, .wait(for: .descriptors, _)) = outcome { slots.ranOutOfDescriptors() }
    if case .stopped(.restart) = outcome { run.state.withLock { $0.wasRestarted = true } }
    let hasRefresher = run.pipeline.refresher != nil
    let state = run.update { record in
      record.bytesFetched = record.bytesFetched.addingSaturated(run.fetched.exchange(0, ordering: .relaxed))
      return outcome.apply(to: &record, stored: run.stored, hasRefresher: hasRefresher, now: instant.date)
    }
    outbox.append(Exchange.UnsavedRun(run: run, state: state))
  }

  private mutating func cleanUp(_ run: Run) {
    slots.free(run)
    run.state.withLock { $0.wasRefused = true }
    add(.cleanUp(run))
  }

  /// Ends the runs that have lost their lease, in a turn, which then tells what the ledger says about their downloads.
  mutating func endCleanedUp() {
    for run in cleanedUp {
      add(.end(run, published: nil))
      remove(run)
      publishLater(CollectionOfOne(run.id), run.read { $0.request })
    }
    cleanedUp = []
  }

  private mutating func remove(_ run: Run) {
    slots.remove(run)
    reasons.mayHaveChanged = true
    stopUnusedSessions()
  }

  // MARK: Leasing

  /// The number of outcomes that may wait for a failing ledger before no more downloads are leased.
  private static let mostUnsaved = 64

  /// Begins an exchange; `nil` if there is nothing to save and nothing may start.
  mutating func beginExchange(at instant: Instant) -> Exchange? {
    selector = nil
    let request = leaseRequest(at: instant)
    let mustSave = outbox.failed != nil || !outbox.waiting.isEmpty
    guard request != nil || (mustSave && !ledgerNeedsRest) else { return nil }
    // If this exchange does not lease, the next one has to.
    if request != nil {
      if returning.count == 0 { due.remove(.leases) }
      mode.mayHaveQueue = true
    }
    mode.ledger = .used
    return outbox.begin(request)
  }

  private mutating func leaseRequest(at instant: Instant) -> LeaseRequest? {
    let verdict = health.verdict(at: instant.now)
    guard due.contains(.leases), mode.phase == .running, !ledgerNeedsRest, !gates.isClosedForAll, verdict != .none,
      outbox.count < Self.mostUnsaved,
      // A failed exchange, which comes first, saves none of these outcomes: the ledger would hold more than the limits permit.
      outbox.failed == nil || outbox.waiting.isEmpty,
      // A command that has stopped a run to change its download would have to stop the next one, again and again.
      !commands.isTurnDue(after: outbox.next)
    else { return nil }
    learnSizes()
    let selector = LeaseSelector(
      limits: stages.limits, rules: gates.rules, slots: slots, most: verdict == .one ? 1 : .max, now: instant.now)
    self.selector = selector
    if returning.areForced {
      let rules = gates.rules
      var request = leaseRequest(scope: .ids(returning.next), at: instant) { rules.areOpen(for: $0) ? .take : .skip }
      request.isByHand = true
      return request
    }
    let scope = returning.count == 0 ? context.options.scope : .ids(returning.next)
    var request = leaseRequest(scope: scope, at: instant, selector.select)
    // Changes when the gates or the admission policies decide by other rules.
    request.rulesVersion = gates.reports &+ gates.replacements &+ stages.limits.replacements
    request.order = stages.limits.order
    request.sharedLimits = stages.limits.shared
    return request
  }

  /// A request to lease downloads that are due now, for the duration in the options. Its location is added when it is
  /// made: the disk may not answer.
  func leaseRequest(
    scope: LeaseScope, at instant: Instant, _ select: @escaping @Sendable (Candidate) -> LeaseSelection
  ) -> LeaseRequest {
    // The timer of a due time has a precision of a microsecond, so the same precision decides what is due.
    let now = instant.date.addingTimeInterval(1e-6)
    var request = LeaseRequest(
      now: now, until: now.addingTimeInterval(context.options.lease / .seconds(1)), scope: scope,
      select: select)
    request.instant = instant.now
    return request
  }

  /// Takes the answer of the ledger to an exchange.
  mutating func take(_ answer: Exchange.Answer, changed: Set<DownloadID>, at instant: Instant) {
    let isGivenAgain = (try? answer.result.get())?.isGivenAgain == true
    let lease = isGivenAgain ? answer.exchange.first : answer.exchange.request
    waits.lastLook = lease?.now ?? waits.lastLook
    let changed = changed.union(outbox.changed)
    switch answer.result {
    case .success(let exchange):
      outbox.succeeded()
      var forced: [DownloadID: Bool] = [:]
      if case .ids(let ids)? = lease?.scope { forced = returning.remove(ids) }
      if answer.mustLease || isGivenAgain || !exchange.reopened.isEmpty { due.insert(.leases) }
      if !answer.unsaved.isEmpty || !exchange.leased.isEmpty { reasons.mayHaveChanged = true }
      if exchange.mayHaveReleasedDelayed { due.insert(.timer) }
      // Timers are set before the states with the due times are published.
      for unsaved in answer.unsaved { arm(unsaved.run.read { $0.notBefore }, at: instant) }
      for (unsaved, isSaved) in zip(answer.unsaved, exchange.saved) {
        let id = unsaved.run.id
        guard isSaved else {
          cleanUp(unsaved.run)
          continue
        }
        // An addition may have changed it again since the commit.
        endSaved(unsaved, isReopened: exchange.reopened.contains(id) || changed.contains(id))
      }
      for record in exchange.leased {
        start(
          record, leasedAt: lease?.instant ?? instant.now, for: lease?.location, isForced: forced[record.id] != nil,
          exceedsLimits: forced[record.id] ?? false, at: instant)
      }
      if let dues = selector?.dues { armAdmission(dues, at: instant) }
    case .failure(let error):
      let error = DownloadError(error, as: .ledger, stage: context.ledgerName)
      if mode.isStopping {
        // The next start finds the downloads whose outcomes could not be saved.
        outbox.succeeded()
        for unsaved in answer.unsaved { endSaved(unsaved, isReopened: false) }
        return
      }
      for unsaved in answer.unsaved { add(.announceUnsaved(unsaved.run, error)) }
      outbox.fail(answer.exchange, error)
      turn.ledgerError = error
      mode.restLedger()
      due.insert(.leases)
    }
  }

  /// Ends a run whose outcome has been saved.
  ///
  /// - Parameter isReopened: Whether the ledger lets the download wait again, because its request has changed or it was
  ///   added again.
  private mutating func endSaved(_ unsaved: Exchange.UnsavedRun, isReopened: Bool) {
    let run = unsaved.run
    // Its command removes the record in its next turn, and tells.
    let isRemoved = run.stopReason == .remove
    let isFinished = if case .finished = unsaved.state { true } else { false }
    let isOver = !isReopened && !(isFinished && run.isOutdated)
    let (isDelayed, awaited, isHeld) = run.read {
      ($0.notBefore != nil, $0.awaited, $0.phase == .waiting && !$0.waitsFor.isEmpty)
    }
    if isDelayed { due.insert(.timer) }
    if slots.candidate(of: run) != nil, !isHeld, isInScope(run) {
      returning.insert(run, isForced: slots.isForced(run))
      due.insert(.leases)
    }
    remove(run)
    // What the outcome was for is not asked for any longer, or the download was told during its run to wait for another
    // one: the ledger has the state. A watcher may have begun after the removal was told, while the run still had a state.
    add(.end(run, published: isOver && !isRemoved ? unsaved.state : nil))
    if !isOver || isHeld { publishLater(CollectionOfOne(run.id)) }
    if !isRemoved, awaited != nil || waits.isAnythingMissing {
      let (available, needed) = run.state.withLock { ($0.roomAtFailure, $0.neededRoom) }
      run.read { waits.note($0, available: available, needed: needed) }
    }
    if isFinished { waits.end(.descriptors) }
    deleteEmptied(run)
  }

  /// Whether this downloader may lease a download again, whose tags may have changed.
  private func isInScope(_ run: Run) -> Bool {
    if case .tag(let tag) = context.options.scope { run.read { $0.request.tags.contains(tag) } } else { true }
  }

  /// Deletes bytes that the run could not delete when it had given them up; the ledger does not have them any longer.
  private mutating func deleteEmptied(_ run: Run) {
    let keys = run.state.withLock {
      $0.mayHoldBytes && $0.record.checkpoint.ranges.isEmpty ? $0.record.partialKeys : []
    }
    guard !keys.isEmpty else { return }
    begin(
      Errand(ids: [run.id]) { context, _ in
        try? await context.storage.removePartials(keys)
        return nil
      })
  }

  // MARK: Runs

  /// Starts a run for a leased download.
  /// - Parameters:
  ///   - begin: When the lease began, at the latest.
  ///   - location: The location for which the ledger has leased it.
  private mutating func start(
    _ record: DownloadRecord, leasedAt begin: Duration, for location: String?, isForced: Bool = false,
    exceedsLimits: Bool = false, at instant: Instant
  ) {
    let run = Run(
      record, leasedAt: begin, for: location, stages.current, context, exceedsLimits: exceedsLimits)
    health.started(record.id)
    // An earlier run has lost its lease without noticing: it has to end before the partial is opened again.
    let earlier = slots.insert(run, isForced: isForced, at: instant.now)
    earlier?.stop(.lostLease)
    if mode.isStopping { run.stop(.shutdown) } else if mode.isSuspended { run.stop(.suspend) }
    // A gate may have closed while the ledger was leasing.
    enforceGates(for: run)
    add(.start(run, after: earlier))
  }

  /// Starts a download that was leased by hand.
  /// - Returns: The runs that are stopped for it.
  mutating func startByHand(
    _ record: DownloadRecord, leasedAt begin: Duration, for location: String?, preempting preemption: Preemption,
    at instant: Instant
  ) -> [Run] {
    let victims = victims(of: preemption, for: record.candidate, at: instant.now)
    stages.limits.started(record.candidate, at: instant.now)
    start(
      record, leasedAt: begin, for: location, isForced: true, exceedsLimits: victims.isEmpty, at: instant)
    for run in victims { run.stop(.preempted(by: record.id)) }
    return victims
  }

  private mutating func victims(of preemption: Preemption, for candidate: Candidate, at now: Duration) -> [Run] {
    switch preemption {
    case .none: return []
    case .oldest:
      learnSizes()
      return slots.victims(stages.limits, for: candidate, among: slots.byStart, at: now)
    case .lowestPriority:
      rankRuns()
      return slots.victims(stages.limits, for: candidate, among: slots.ranked.reversed(), at: now)
    }
  }

  /// Takes over the changed request of a running download from the ledger.
  /// - Parameter before: The run's request before the change. What the run itself has changed since, such as an expired
  ///   link, is kept.
  mutating func takeOver(_ record: DownloadRecord, since before: DownloadRequest?) {
    guard let run = slots.runs[record.id] else { return }
    // Before the run sees the new request: what it has made belongs to the earlier one, and is not published as the new file.
    let isOther = run.state.withLock { state in
      let mine = state.record.request
      let merged = mine.takingOver(record.request, since: before ?? mine)
      var work = state.request
      // The ledger has the run's fresh link before the run knows that it is saved.
      if let link = state.freshLink, merged.url.absoluteString == link.absoluteString { work.url = merged.url }
      return merged.changesWork(begunFor: work)
    }
    if isOther { run.stop(.changed) }
    run.update { mine in
      mine.request = mine.request.takingOver(record.request, since: before ?? mine.request)
      (mine.rank, mine.added, mine.waitsFor) = (record.rank, record.added, record.waitsFor)
    }
    slots.update(run)
    enforceGates(for: run)
  }
}
