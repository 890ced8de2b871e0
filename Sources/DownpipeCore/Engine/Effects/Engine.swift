internal import Foundation
internal import Synchronization

/// Carries out what ``EngineState`` decides.
///
/// A loop gives the state its events: calls, outcomes of runs and reports of gates, which arrive in the mailbox. It never
/// waits for a ledger or a disk. What has to wait for the ledger and is decided in turns is a ``Job``; jobs are done beside the
/// loop, one at a time: so a gate that closes stops transfers although the ledger hangs. What has to wait for a disk is an
/// ``Errand``, or part of a run: a disk holds up its own downloads only. Renewals of leases, rankings, look-ups and the clean-up
/// of refused runs have tasks of their own. Answers of jobs and timers are given to the state, too, each in
/// one step of this actor.
actor Engine {
  nonisolated let context: EngineContext
  private(set) var state: EngineState
  /// The child tasks that the loop starts next.
  private var newTasks: [@Sendable () async -> Void] = []
  /// The gates that the loop begins to watch next.
  private var newGates: [WatchedGate] = []
  /// The errands that the loop begins next.
  private var newErrands: [Errand] = []
  /// What ends observers that go on after their events have ended.
  private var observerStops: [StopSignal<Void>] = []
  /// The latest ranking that is in progress.
  var ranking: Completion?
  /// Whether the ledger is renewing the leases.
  private var isRenewing = false
  /// Whether a task leases shares of rates.
  private var isLeasingRates = false
  /// Whether the loop is about to start new tasks.
  private var isDeciding = false

  init(
    pipeline: Pipeline, sessions: [any SourceSession], store: any LedgerStore, settings: (any Sendable)? = nil,
    options: DownloaderOptions
  ) {
    context = EngineContext(options: options, store: store, settings: settings, pipeline: pipeline)
    state = EngineState(pipeline, sessions: sessions, context)
  }

  nonisolated var hub: EventHub { context.hub }
  nonisolated var store: any LedgerStore { context.store }
  nonisolated var options: DownloaderOptions { context.options }
  nonisolated var time: any TimeSource { context.options.time }
  var pipeline: Pipeline { state.stages.current.pipeline }
  var instant: EngineState.Instant {
    let now = time.now
    return EngineState.Instant(now: now, date: time.date)
  }

  // MARK: The loop

  /// Runs until ``beginShutdown()`` is called or the task is cancelled, and then until all outcomes are saved. All other tasks
  /// are children of this one, or runs and exchanges that it waits for.
  func run() async {
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { watchers in
        for observer in pipeline.observers { watch(with: observer, in: &watchers) }
        await withDiscardingTaskGroup { group in
          group.addTask { await self.followOthers() }
          decide(.maintained)
          leaseSharedRates()
          await loop(in: &group, &watchers)
          // These calls come before the wait for the children, which may wait for a command or until the engine is idle.
          context.mailbox.close()
          decide(.over)
          hub.finish()
          group.cancelAll()
        }
        for gate in state.gates.watched { gate.stop.stop(()) }
        // Observers read what is left of their events, and may look at the ledger once more.
        await context.watchersEnd()
        await close()
      }
    } onCancel: {
      context.mailbox.wake()
    }
    context.end.complete()
  }

  /// - Parameters:
  ///   - group: The engine's own tasks.
  ///   - watchers: Observers, gates and errands, which may block: nothing else waits for their ends.
  private func loop(in group: inout DiscardingTaskGroup, _ watchers: inout DiscardingTaskGroup) async {
    context.mailbox.wake()
    repeat {
      receive(await context.mailbox.next())
      for work in newTasks { group.addTask { await work() } }
      for gate in newGates {
        watchers.addTask { [context] in
          await context.watching(gate.gate.name) { await gate.watch(context.mailbox) }
        }
      }
      for errand in newErrands {
        watchers.addTask { [context] in
          await context.naming(context.storageName) {
            for earlier in errand.earlier { try? await earlier.waitThroughCancellation() }
            var changes = Changes()
            let decision = await errand.perform(context, &changes)
            await self.decide(.errandEnded(errand, decision, changes))
          }
        }
      }
      (newTasks, newGates, newErrands) = ([], [], [])
    } while !state.isOver
  }

  private func watch(with observer: any Observer, in watchers: inout DiscardingTaskGroup) {
    let events = hub.allEvents()
    let observerContext = ObserverContext(time: time) { [store] in try await store.counts(.all) }
    let stop = StopSignal<Void>()
    observerStops.append(stop)
    watchers.addTask { [context] in
      await context.watching(observer.name) {
        await stop.guarding { await observer.observe(events, in: observerContext) }
      }
    }
  }

  private func receive(_ mail: Mailbox.Mail) {
    isDeciding = true
    defer { isDeciding = false }
    if Task.isCancelled { decide(.stop) }
    if mail.hasEndedTurn { decide(.turnEnded) }
    for (run, outcome) in mail.outcomes { decide(.ended(run, outcome)) }
    for run in mail.cleanedUp { decide(.cleanedUp(run)) }
    take(mail.rules)
    for call in mail.calls {
      switch call {
      case .call(let call): decide(.called(call))
      case .addition(let addition): decide(.addition(addition))
      case .cancelled(let number): decide(.cancelledCall(number))
      }
    }
    let isWatched = hub.isAnythingWatched
    let audience = EngineState.Audience(
      isAnythingWatched: isWatched, isAnythingAwaited: isWatched || !state.idleWaiters.isEmpty)
    decide(.news(audience, needsTurn: mail.needsTurn))
  }

  /// Takes the rules that gates have reported, before a state is shown that depends on them.
  func takeRules() { take(context.mailbox.takeRules()) }

  private func take(_ rules: OrderedTable<Int, [GateRule]>) {
    for (gate, rules) in rules { for rule in rules { decide(.reported(gate: gate, rule)) } }
  }

  /// Tells the state what has happened, and carries out what it decides.
  func decide(_ event: EngineState.Event) {
    if let probe = options.probe { probe.note(.received(EngineEvent(event: event))) }
    state.receive(event, at: instant)
    for action in state.takeActions() { carryOut(action) }
    if !isDeciding, state.hasNews { context.mailbox.wake(forTurn: false) }
  }

  /// Makes the loop start a child task.
  func begin(_ work: @escaping @Sendable () async -> Void) {
    newTasks.append(work)
    if !isDeciding { context.mailbox.wake(forTurn: false) }
  }

  private func carryOut(_ action: EngineState.Action) {
    switch action {
    case .start(let run, let earlier):
      run.start(after: earlier)
      #if SABOTAGE
        if options.sabotage == .startsTwice {
          Run(run.record, leasedAt: time.now, run.stages, context).start(after: nil)
        }
      #endif
    case .end(let run, let published):
      // A watcher that hears of it finds the download without its run, and may add or resume it at once.
      if let published { run.announce(state: published) }
      run.markEnded()
    case .stop(let session): begin { await session.stop() }
    case .announceUnsaved(let run, let error):
      guard run.status.state != .waiting(.turn) else { return }
      run.announce(.attemptFailed(error))
      run.announce(state: .waiting(.turn))
    case .cleanUp(let run): begin { await self.cleanUp(run) }
    case .takeTurn: begin { await self.takeTurn() }
    case .perform(let errand):
      newErrands.append(errand)
      if !isDeciding { context.mailbox.wake(forTurn: false) }
    case .watch(let gate):
      newGates.append(gate)
      if !isDeciding { context.mailbox.wake(forTurn: false) }
    case .sleep(let due, let timer): begin { await self.sleep(until: due, timer) }
    case .askRoom: begin { await self.askRoom() }
    case .lookForOthers: begin { await self.lookForOthers() }
    case .publish(.status(let status)): hub.publish(stateOf: status)
    case .publish(.reason(let status)): hub.publish(stateOf: status, isReason: true)
    case .publish(.changes(let ids)): hub.publish(changesOf: ids)
    case .publish(.reasons(let isOfQueue)): hub.publishReasons(isOfQueue: isOfQueue)
    case .publish(.removal(let request)): hub.publish(removalOf: request)
    case .publish(.removalOf(let id)): hub.publish(removalOf: id)
    case .publish(.incomplete): hub.publishIncomplete()
    case .announcePresentState(let run): run.announcePresentState()
    case .answer(let answers): for answer in answers { answer() }
    case .leaseSharedRates: leaseSharedRates()
    case .tickRuns: for run in state.slots.runs.values { run.tick(at: time.now) }
    // Not here: the ledger may not answer, and progress and speed go on without it.
    case .renewLeases: if !isRenewing { begin { await self.renewLeases() } }
    case .maintain: begin { await self.maintain() }
    }
  }

  /// Performs the jobs of a turn.
  private func takeTurn() async {
    decide(.turnGoesOn)
    while let job = state.job {
      decide(.performed(await job.perform(context)))
      // What follows sees that the runs are over that this has ended.
      if state.job == nil { decide(.turnGoesOn) }
    }
    #if SABOTAGE
      if options.sabotage == .lostMessage { return context.mailbox.postEndOfTurn(isLostBesideOutcomes: true) }
    #endif
    context.mailbox.postEndOfTurn()
  }

  // MARK: Ends

  /// Tells the loop to stop all runs at a checkpoint and to end.
  func beginShutdown() {
    decide(.stop)
    context.mailbox.wake()
  }

  /// What has not ended after the shutdown has begun: the stages of runs, or observers and gates, or the storage or the ledger.
  /// From now on observers are told nothing, and are cancelled.
  func unended() -> [ShutdownReport.Unended] {
    hub.finish()
    for stop in observerStops { stop.stop(()) }
    context.giveUpWatchers()
    let hasErrands = !context.areErrandsGivenUp.exchange(true, ordering: .relaxed) && state.errands.count > 0
    context.mailbox.wake(forTurn: false)
    let runs = state.slots.runs.values.map { run in
      // Otherwise its work has ended, and its outcome is to be saved.
      let isWorking = state.slots.isWorking(run)
      return ShutdownReport.Unended(stage: isWorking ? run.presentStage : context.ledgerName, download: run.id)
    }
    guard runs.isEmpty else { return runs }
    // Observers and gates have not been told to end.
    if hasErrands { return [ShutdownReport.Unended(stage: context.storageName, download: nil)] }
    let watching = context.watchingStages
    let others =
      watching.isEmpty ? (state.mode.isTakingTurn ? [context.storageName] : []) + [context.ledgerName] : watching
    return others.map { ShutdownReport.Unended(stage: $0, download: nil) }
  }

  /// - Throws: `.shutDown` after the shutdown has begun.
  func checkOpen() throws(DownloadError) {
    guard !state.mode.isStopping else { throw DownloadError.shutDown }
  }

  /// Stops the sources, removes what others have finished since, and closes the ledger, after the loop has ended.
  private func close() async {
    for session in state.stages.allSessions { await session.stop() }
    await context.removeRefusedCopies()
    try? await store.close()
  }

  /// Cleans up after a run that the ledger has refused: it has lost its lease. Says so, or deletes its partial if its download
  /// was removed. What it has published is removed when another owner has ended the download with another file.
  private func cleanUp(_ run: Run) async {
    do {
      if try await store.record(run.id)?.generation == run.key.generation {
        run.announceLoss()
      } else {
        // A record may be of a later download with the same id, whose partial has another key.
        try await context.storage.removePartials(run.read { $0.partialKeys })
      }
    } catch {
      // The bytes are left as an orphan.
    }
    await context.removeCopies(run.refusedCopies)
    context.mailbox.post(cleanedUp: run)
  }

  // MARK: Timers

  private func sleep(until due: Duration, _ timer: EngineState.Timer) async {
    guard (try? await time.sleep(until: due, purpose: timer.purpose)) != nil else { return }
    decide(.fired(timer, due))
  }

  private func askRoom() async { decide(.room(await context.availableBytes())) }

  /// Starts the task that leases shares of rates when the first policy needs them.
  func leaseSharedRates() {
    guard !isLeasingRates, context.rates.isShared else { return }
    isLeasingRates = true
    let leases = RateLeases(rates: context.rates, store: store, time: time) { await self.tellRunning($0) }
    begin { await leases.keep() }
  }

  /// Tells the watchers of all running downloads of an error that ends none of them.
  private func tellRunning(_ error: DownloadError) {
    for run in state.slots.runs.values { run.announce(.refused(error)) }
  }

  private func maintain() async {
    // First: after the machine has slept they may have expired.
    if state.slots.hasRuns { await renewLeases() }
    decide(.maintained)
    noteChangesByOthers()
  }

  private func renewLeases() async {
    isRenewing = true
    defer { isRenewing = false }
    let (instant, held) = (instant, state.slots.runs.values)
    do {
      try await store.renewLeases(until: instant.date.addingTimeInterval(options.lease / .seconds(1)))
    } catch {
      return
    }
    guard store.leasesExpire else { return }
    let now = time.now
    for run in held { run.renewLease(until: instant.now + options.lease, at: now) }
  }

  // MARK: Idleness

  /// Returns when no download of the ledger runs or can start, here or with another owner.
  func waitUntilIdle() async throws {
    try checkOpen()
    let waiter = Completion()
    decide(.awaitsIdleness(waiter))
    context.mailbox.wake()
    defer { decide(.awaitsIdlenessNoLonger(waiter)) }
    try await waiter.wait()
  }
}

extension WatchedGate {
  /// Posts the rules that the gate reports, until it is replaced.
  fileprivate func watch(_ mailbox: Mailbox) async {
    await stop.guarding {
      let hasReported = Atomic(false)
      do {
        try await gate.watch { rule in
          hasReported.store(true, ordering: .relaxed)
          mailbox.post(rule, of: number)
        }
        if !hasReported.load(ordering: .relaxed), !Task.isCancelled { mailbox.post(.missing(from: gate), of: number) }
      } catch is CancellationError {
      } catch {
        // A gate that has failed no longer knows, and a gate must not close by guess.
        mailbox.post(.open, of: number)
      }
    }
  }
}
