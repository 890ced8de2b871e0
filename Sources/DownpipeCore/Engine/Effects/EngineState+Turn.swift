internal import Foundation
internal import Synchronization

// Turns: what has to wait for the ledger, one job at a time.
//
// Only turns change and publish the states of downloads that do not run. So what a job has read from the ledger is still
// true when it is published.
extension EngineState {
  /// The parts of a turn, in their order.
  enum TurnPart: CaseIterable, Sendable {
    /// What a failure of the ledger has prevented is done again.
    case renames, reclaim
    /// Runs end that the ledger had refused and that have been cleaned up.
    case cleanedUp
    /// Changes of other users of the ledger are taken over.
    case others
    case calls, publishing
    /// Downloads may start whose resource is available.
    case due, publishingDue
    /// Outcomes are saved, and downloads are added and leased.
    case exchange
    /// Reasons to wait are told when free slots are filled again.
    case reasons, publishingExchange
    /// A timer is set for the next due time.
    case timer
    case idle
  }

  /// The turn in progress.
  struct Turn: Sendable {
    fileprivate var parts = TurnPart.allCases[...]
    /// Whether something was saved, added or leased: then the parts come once more.
    var isRepeated = false
    /// Whether nothing is told before the parts come once more.
    fileprivate var mustDecideFirst = false
    /// What was called before this part, and has not been carried out.
    var calls: ArraySlice<CommandQueue.Entry> = []
    /// The command that decides.
    var command = 0
    /// What callers get when the changes are published.
    var answers: [Answer] = []
    /// Why the last exchange or reclaim of this turn has failed.
    var ledgerError: DownloadError?
  }

  /// Decides what is done next in a turn; `nil` if the turn is over.
  mutating func nextJob(at instant: Instant) -> Job? {
    while true {
      while let call = turn.calls.first {
        // What was called before comes first.
        if !additions.isEmpty, !commands.adds(call) { return addWaiting() }
        turn.calls.removeFirst()
        if let job = carryOut(call, at: instant) { return job }
      }
      if let part = turn.parts.popFirst() {
        if let job = begin(part, at: instant) { return job }
      } else if turn.isRepeated {
        // Callers go on when all is told.
        let answers = turn.answers
        turn = Turn()
        turn.answers = answers
      } else {
        turn = Turn()
        return nil
      }
    }
  }

  private mutating func begin(_ part: TurnPart, at instant: Instant) -> Job? {
    switch part {
    case .renames: return finishRenaming()
    case .reclaim: return due.contains(.reclaim) && !ledgerNeedsRest && !mode.isStopping ? reclaim() : nil
    case .cleanedUp:
      guard !cleanedUp.isEmpty else { return nil }
      endCleanedUp()
      return .effectsFirst
    case .others: return takeOverFromOthers()
    case .reasons, .publishingExchange:
      // Commands whose runs have ended come before what is told of their downloads.
      if commands.goOn() { (turn.isRepeated, turn.mustDecideFirst) = (true, true) }
      guard !turn.mustDecideFirst else { return nil }
      return part == .reasons ? tellReasons() : publishChanges() ?? answerCallers()
    case .calls:
      commands.goOn()
      turn.calls = commands.takeReady()[...]
      return nil
    case .publishing, .publishingDue: return publishChanges() ?? answerCallers()
    case .due: return makeDue()
    case .exchange: return beginExchangeJob(at: instant)
    case .timer: return setTimer(at: instant)
    case .idle: return resumeIdleWaiters()
    }
  }

  /// Lets callers go on, when what has changed is published.
  mutating func answerCallers() -> Job? {
    if !turn.answers.isEmpty { add(.answer(turn.answers)) }
    turn.answers = []
    return nil
  }

  // MARK: Calls

  /// Begins to carry out what was called; `nil` if that does not need the ledger.
  mutating func carryOut(_ entry: CommandQueue.Entry, at instant: Instant) -> Job? {
    switch entry {
    case .addition(let addition):
      additions.append(addition)
      return nil
    case .command(let number):
      let mustSettle = commands.concernsDownloads(number) && (due.contains(.reclaim) || outbox.failed != nil)
      if mustSettle, turn.ledgerError == nil {
        turn.calls.insert(entry, at: turn.calls.startIndex)
        return settle()
      }
      let runs = slots.runs
      #if SABOTAGE
        if context.options.sabotage == .lateCommands, let own = commands.takeTurnLate(of: number) {
          return decide(own.decision, of: number, at: instant)
        }
      #endif
      guard let own = commands.takeTurn(of: number, hasRun: { runs[$0] != nil }) else { return nil }
      // What it has begun may be done without the ledger.
      if mustSettle, !own.hasBegun, let error = turn.ledgerError {
        commands.fail(number, error)
        return nil
      }
      return decide(own.decision, of: number, at: instant)
    }
  }

  /// Finds out which downloads this owner holds, before a command changes some: it would take those of dead owners, and those
  /// that were leased in an exchange without an answer, for downloads of other processes.
  private mutating func settle() -> Job {
    if due.contains(.reclaim) { return reclaim() }
    selector = nil
    (turn.isRepeated, mode.ledger) = (true, .used)
    return perform(outbox.begin(nil))
  }

  private mutating func decide(_ decision: AnyDecision, of number: Int, at instant: Instant) -> Job? {
    turn.command = number
    switch decision.decide(&self, instant) {
    case .over(let answer):
      if commands.end(number) { turn.answers.append(answer) }
      mayLeaseMore()
      return nil
    case .wait(let runs, let comesBeforeLeases, let then):
      if commands.wait(number, for: runs, comesBeforeLeases: comesBeforeLeases, then: then) {
        turn.calls.append(.command(number))
      }
      return nil
    case .job(let job):
      return Job(job) { state, instant, decision in state.decide(decision, of: number, at: instant) }
    case .errand(let ids, let isLast, let errand):
      commands.waitForErrand(number, isLast: isLast)
      begin(Errand(command: number, ids: ids, perform: errand))
      return nil
    }
  }

  // MARK: Failures

  private mutating func finishRenaming() -> Job? {
    guard !ledgerNeedsRest, !mode.isStopping, due.remove(.renames) != nil else { return nil }
    return Job { context, _ in
      try? await context.store.unsettledMoves().map(\.id)
    } then: { state, _, found in
      guard let found else {
        state.due.insert(.renames)
        state.restLedger()
        return nil
      }
      // After their errands: some are being renamed.
      for id in found {
        state.begin(
          Errand(ids: [id]) { context, changes in
            await context.finishRenaming(of: id, &changes)
            return nil
          })
      }
      return nil
    }
  }

  /// Reclaims the downloads of dead owners.
  private mutating func reclaim() -> Job {
    due.remove(.reclaim)
    return Job { context, _ in
      await Result { try await context.store.reclaim(at: context.time.date) }
    } then: { state, _, result in
      switch result {
      case .success(let count):
        guard count > 0 else { break }
        state.due.insert([.leases, .deletions])
        state.reasons.isUrgent = true
        state.tidy()
      case .failure(let error):
        state.due.insert(.reclaim)
        state.noteFailure(error)
      }
      return nil
    }
  }

  /// Lets the ledger rest after a failure that matters to those who wait until the downloader is idle.
  private mutating func noteFailure(_ error: any Error) {
    let error = DownloadError(error, as: .ledger, stage: context.ledgerName)
    turn.ledgerError = error
    outbox.noteFailure(error)
    restLedger()
  }

  /// Lets the ledger rest after a failure; a turn tries again after a while what has failed, unless the downloader stops.
  mutating func restLedger() {
    mode.restLedger()
    if !mode.isStopping { due.insert(.turn) }
  }

  // MARK: Others

  /// Takes over the requests of running downloads that others have changed, and publishes the changes of those that are
  /// watched.
  private mutating func takeOverFromOthers() -> Job? {
    guard !ledgerNeedsRest, due.remove(.others) != nil else { return nil }
    let before = slots.requests
    guard !before.isEmpty else {
      publishLater(context.hub.watchedDownloads)
      return nil
    }
    return Job { context, _ in
      try? await context.store.records(of: Array(before.keys))
    } then: { state, _, records in
      guard let records else {
        state.due.insert(.others)
        state.restLedger()
        return nil
      }
      for record in records where state.slots.runs[record.id]?.key.generation == record.generation {
        state.takeOver(record, since: before[record.id])
      }
      state.publishLater(state.context.hub.watchedDownloads)
      return nil
    }
  }

  // MARK: Due times

  private mutating func makeDue() -> Job? {
    let ids = waits.takeDue()
    guard !ids.isEmpty else { return nil }
    return Job { context, changes in
      // If this fails, the downloads start at their due times.
      _ = try? await context.store.transition(.ids(ids), .becameDue, at: context.time.date)
      changes.ids += ids
      changes.due.insert(.leases)
    } then: { _, _, _ in
      nil
    }
  }

  /// Sets a timer for the next due time. The ledger is only read if there may be a new one.
  private mutating func setTimer(at instant: Instant) -> Job? {
    guard !mode.isStopping else { return nil }
    guard mode.ledger == .used else {
      armRest(at: instant)
      return nil
    }
    guard due.remove(.timer) != nil else { return nil }
    // The search starts at the time of the last lease, so that downloads that became due since are not missed. What is
    // due within a microsecond counts as due, as for a lease: a timer for it would fire at once, again and again.
    let start = waits.lastLook ?? instant.date.addingTimeInterval(1e-6)
    return Job { context, _ in
      await Result { try await context.store.nextDue(after: start) }
    } then: {
      state, instant, due in
      switch due {
      case .success(let due):
        state.waits.lastLook = nil
        state.arm(due, at: instant)
      case .failure:
        state.due.insert(.timer)
        state.arm(instant.date.addingTimeInterval(1), at: instant)
      }
      return nil
    }
  }

  // MARK: Idleness

  /// Resumes the idle waiters, if no download waits or runs.
  private mutating func resumeIdleWaiters() -> Job? {
    guard !idleWaiters.isEmpty else { return nil }
    let failure = outbox.failures >= 5 ? outbox.lastError : nil
    guard isIdle else {
      if let failure { idleWaiters.finish(.failure(failure)) }
      return nil
    }
    // The answer says nothing about what happens before a later call.
    let waiting = idleWaiters
    return Job { context, _ in
      await Result { try await context.store.isBusy() }
    } then: { state, _, answer in
      switch answer {
      case .success(let isBusy):
        #if SABOTAGE
          if state.context.options.sabotage == .idleWithoutSecondLook { state.idleWaiters.finish(.success(())) }
        #endif
        if !isBusy, state.isIdle {
          state.idleWaiters.finish(waiting, .success(()))
        } else if let failure {
          state.idleWaiters.finish(waiting, .failure(failure))
        }
      case .failure(let error):
        if let failure { state.idleWaiters.finish(waiting, .failure(failure)) } else { state.noteFailure(error) }
      }
      return nil
    }
  }

  private var isIdle: Bool { !slots.hasRuns && outbox.isEmpty && additions.isEmpty }
}
