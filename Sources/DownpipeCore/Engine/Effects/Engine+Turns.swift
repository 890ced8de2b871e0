internal import Foundation
internal import Synchronization

// Turns: what has to wait for the ledger or for disks.
extension Engine {
  /// Does what has to wait for the ledger or for disks, one turn at a time.
  ///
  /// Only turns change and publish the states of downloads that do not run. So what is read from the ledger in a turn
  /// stays true until the turn has published it.
  func takeTurn() async {
    var isDone = false
    while !isDone {
      await recoverFromFailures()
      decide { state, _ in state.endAbandoned() }
      await takeOverFromOthers()
      await compareReasons()
      await carryOutCalls()
      await makeDue()
      isDone = await !exchange()
      await setTimer()
      await resumeIdleWaiters()
    }
    context.mailbox.postEndOfTurn(isLost: options.sabotage == .lostMessage)
  }

  /// Carries out commands, and publishes what they have changed before they return. Additions wait for the exchange.
  private func carryOutCalls() async {
    if state.commands.count == 0 { lostRemovals = [:] }
    var answers: [Mailbox.Answer] = []
    for call in context.mailbox.takeCalls() {
      switch call {
      case .addition(let addition):
        waitingAdditions.append(addition)
      case .command(let command):
        // What was called before comes first.
        if !waitingAdditions.isEmpty {
          let added = await addWaiting()
          tell(added)
          answers += added.answers
        }
        answers.append(await command.perform(self))
        state.mode.mayLease = true
        state.reasons.mayHaveChanged = true
      }
    }
    await publishChanges()
    for answer in answers { answer() }
  }

  /// Saves outcomes in the ledger, adds downloads and leases downloads.
  /// - Returns: `false` if there was nothing to do.
  private func exchange() async -> Bool {
    guard let exchange = decide({ $0.beginExchange(at: $1) }) else {
      guard !waitingAdditions.isEmpty else { return false }
      await answer(addWaiting())
      return true
    }
    // In a task of its own, which is not cancelled: what has been saved would not be known. The ledger adds meanwhile, in
    // the same transaction if it can.
    let task = context.executors.start { [context] in await exchange.perform(in: context) }
    var added = await addWaiting()
    let answer = await task.value
    if case .success(let exchange) = answer.result {
      for record in exchange.leased { added.before[record.id] = record.request }
    }
    decide(.exchanged(answer, changed: added.changed, removed: await prepareEnds(answer)))
    await self.answer(added)
    return true
  }

  private func answer(_ added: Added) async {
    tell(added)
    await publishChanges()
    for answer in added.answers { answer() }
  }

  /// Does what has to be done between the commit of outcomes and the ends of their runs.
  /// - Returns: The runs whose downloads were to be removed.
  private func prepareEnds(_ answer: Exchange.Answer) async -> Set<ObjectIdentifier> {
    var removed: Set<ObjectIdentifier> = []
    for run in answer.runsToEnd(isStopping: state.mode.isStopping) {
      // Done here, so that it is done even if the caller was cancelled.
      // Earlier commands that have waited for the run come first.
      if run.stopReason == .remove, state.commands.count(for: run.id) < 2 {
        removed.insert(ObjectIdentifier(run))
        await removeRecord(of: run)
      }
      if run.state.withLock({ $0.mayHoldBytes }), run.read({ $0.checkpoint.ranges.isEmpty }) {
        try? await context.storage.removePartial(run.key)
      }
    }
    return removed
  }

  /// Lets downloads start whose resource is available.
  private func makeDue() async {
    let ids = state.waits.takeDue()
    guard !ids.isEmpty else { return }
    // If this fails, the downloads start at their due times.
    _ = try? await store.transition(.ids(ids), .becameDue, at: time.date)
    noteChange(of: ids)
    await publishChanges()
    state.mode.mayLease = true
  }

  /// Sets a timer for the next due time. The ledger is only read if there may be a new one.
  private func setTimer() async {
    guard !state.mode.isStopping else { return }
    if state.mode.ledgerRests { return decide { $0.armRest(at: $1) } }
    guard state.waits.mayHaveDelayed else { return }
    state.waits.mayHaveDelayed = false
    // The search starts at the time of the last lease, so that downloads that became due since are not missed. What is
    // due within a microsecond counts as due, as for a lease: a timer for it would fire at once, again and again.
    let start = state.waits.lastLook ?? time.date.addingTimeInterval(1e-6)
    do {
      let due = try await store.nextDue(after: start)
      state.waits.lastLook = nil
      decide { $0.arm(due, at: $1) }
    } catch {
      state.waits.mayHaveDelayed = true
      decide { $0.arm($1.date.addingTimeInterval(1), at: $1) }
    }
  }

  /// Resumes the idle waiters, if no download waits or runs.
  private func resumeIdleWaiters() async {
    guard !idleWaiters.isEmpty else { return }
    let outbox = state.outbox
    if outbox.failures >= 5, let error = outbox.lastError { return idleWaiters.finish(.failure(error)) }
    // The answer says nothing about what happens before a later call.
    let waiting = idleWaiters
    guard isIdle else { return }
    let isBusy: Bool
    do { isBusy = try await store.isBusy() } catch {
      state.outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
      return restLedger()
    }
    if options.sabotage == .idleWithoutSecondLook { return idleWaiters.finish(.success(())) }
    if !isBusy, isIdle { idleWaiters.finish(waiting, .success(())) }
  }

  private var isIdle: Bool { state.slots.isEmpty && state.outbox.isEmpty && waitingAdditions.isEmpty }

  /// Does again what a failure of the ledger has prevented, unless the ledger rests.
  private func recoverFromFailures() async {
    guard !state.ledgerNeedsRest, !state.mode.isStopping else { return }
    if state.mode.mustFinishRenaming { await finishRenaming() }
    do { try await clarifyOwnership() } catch {
      state.mode.ledgerRests = true
      state.outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
    }
  }

  /// Finds out which downloads of the ledger this owner holds, if a failure of the ledger has left that open: those of dead
  /// owners are reclaimed, and those that a lease has taken whose answer was lost are released. Otherwise nothing would work
  /// on them, and commands would take them for those of other processes.
  /// - Throws: The errors of the ledger.
  func clarifyOwnership() async throws {
    if state.mode.mustReclaim {
      _ = try await store.reclaim(at: time.date)
      state.mode.mustReclaim = false
    }
    guard state.mode.mayHoldUnknown else { return }
    let active = try await store.records(DownloadQuery(phases: [.transferring, .processing]))
    for var record in active where record.owner == store.owner && state.slots.runs[record.id] == nil {
      // The request may have changed since the lease: then this gives up what was done for the earlier one.
      record.apply(.suspended)
      if try await store.save(record, [.state, .checkpoint, .steps], at: time.date) {
        noteChange(of: CollectionOfOne(record.id))
      }
      state.mode.mayLease = true
    }
    state.mode.mayHoldUnknown = false
  }

  /// Lets the ledger rest after a failure; a turn tries again after a while what has failed, unless the downloader stops.
  func restLedger() {
    state.mode.ledgerRests = true
    if !state.mode.isStopping { context.mailbox.wake() }
  }
}
