internal import Foundation

/// Decides which downloads run.
///
/// A single loop makes all decisions: outcomes of runs, gate reports and timers arrive in its mailbox. It never waits for a
/// ledger or a disk. What has to wait, such as commands and leases, is done in turns beside it, one at a time: so a gate
/// that closes stops transfers although a disk or the ledger hangs.
actor Engine {
  nonisolated let context: EngineContext
  var stages: LiveStages
  var slots = Slots()
  var gates: Gates
  var waits = Waits()
  var idleWaiters = IdleWaiters()
  var outbox = Outbox()
  var commands = CommandQueue()
  var reasons = WaitingReasons()
  /// The records of runs whose removal has failed, perhaps after it has taken effect. The commands that removed them
  /// check whether the records are gone.
  var lostRemovals: [DownloadID: DownloadRecord] = [:]
  /// Downloads whose states have changed in this turn, or could not be read from the ledger.
  var unpublished = Unpublished()
  /// Downloads that the next exchange adds.
  var additions: [Mailbox.Addition] = []
  var mode = Mode()
  /// Selects the downloads of the exchange in progress; `nil` if it leases none.
  var selector: LeaseSelector?
  /// Runs that have lost their lease and have been cleaned up; the next turn ends them.
  var abandoned: [Run] = []
  /// The child tasks that the loop starts next.
  private var newTasks: [@Sendable () async -> Void] = []
  /// Whether the loop is about to start new tasks.
  private var isDeciding = false

  /// The state of the engine apart from its downloads.
  struct Mode: Sendable {
    var isSuspended = false
    /// Whether a turn is being taken.
    var isTakingTurn = false
    /// Whether there is something for a turn to do.
    var mustTakeTurn = false
    /// Whether a gate, or what it decides by, has changed since the runs were compared with the gates.
    var mustEnforceGates = false
    /// Whether gates have reported rules whose consequences have not been told.
    var hasGateNews = false
    /// The number of calls that suspend the downloads, or end that.
    var suspensions = 0
    var isStopping = false
    /// Whether the ledger ranks by the pipeline's policy.
    var isRanked = false
    /// Whether a child task reports progress and renews leases.
    var ticks = false
    /// Whether a download may have become leasable since the last lease.
    var mayLease = true
    /// Whether the ledger has failed, and is not used until a timer fires.
    var ledgerRests = false
    /// Whether this owner may hold downloads in the ledger that it does not know of.
    var mayHoldUnknown = false
    /// Whether downloads of dead owners have to be reclaimed.
    var mustReclaim = true
    /// Whether other users of the ledger may have changed downloads.
    var mustTakeOver = false
    /// Whether files were renamed without the ledger's knowledge, because it has failed.
    var mustFinishRenaming = false
    /// Whether that timer is set.
    var restTimerIsSet = false
    /// Whether a child task looks for changes by other processes.
    var looksForOthers = false
    /// Whether the ledger may report changes by other processes.
    var hearsOthers = true
    /// Whether downloads may be queued, also for other owners.
    var mayHaveQueue = true
    /// When an admission policy is asked again.
    var admissionDue: Duration?
  }

  init(
    pipeline: Pipeline, sessions: [any SourceSession], store: any LedgerStore, settings: (any Sendable)? = nil,
    options: DownloaderOptions
  ) {
    context = EngineContext(options: options, store: store, settings: settings, pipeline: pipeline)
    stages = LiveStages(pipeline, sessions: sessions)
    gates = Gates(pipeline.gates)
    mode.isSuspended = options.startsSuspended
    mode.isRanked = !options.startsSuspended
  }

  nonisolated var hub: EventHub { context.hub }
  nonisolated var store: any LedgerStore { context.store }
  nonisolated var options: DownloaderOptions { context.options }
  nonisolated var time: any TimeSource { context.options.time }
  var pipeline: Pipeline { stages.current.pipeline }

  // MARK: The loop

  /// Runs until ``beginShutdown()`` is called or the task is cancelled. All other tasks are children of this one, or
  /// runs that it waits for.
  func run() async {
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        for observer in pipeline.observers {
          let events = hub.allEvents()
          let context = ObserverContext(time: time) { [store] in try await store.counts(.all) }
          group.addTask { await observer.observe(events, in: context) }
        }
        group.addTask { await self.maintain() }
        group.addTask { await self.followOthers() }
        watchGates()
        await loop(in: &group)
        // These calls come before the wait for the children, which may wait for a command or until the engine is idle.
        context.mailbox.close()
        idleWaiters.finish(.failure(DownloadError.shutDown))
        hub.finish()
        group.cancelAll()
      }
    } onCancel: {
      context.mailbox.wake()
    }
  }

  private func loop(in group: inout DiscardingTaskGroup) async {
    context.mailbox.wake()
    while true {
      decide(await context.mailbox.next())
      for work in newTasks { group.addTask { await work() } }
      newTasks = []
      if mode.mustTakeTurn, !mode.isTakingTurn {
        (mode.mustTakeTurn, mode.isTakingTurn) = (false, true)
        group.addTask { await self.takeTurn() }
      }
      if mode.isStopping, !mode.isTakingTurn, slots.isEmpty, outbox.isEmpty { return }
    }
  }

  /// Makes the loop start a child task.
  func begin(_ work: @escaping @Sendable () async -> Void) {
    newTasks.append(work)
    if !isDeciding { context.mailbox.wake(forTurn: false) }
  }

  /// Decides what the news means.
  private func decide(_ mail: Mailbox.Mail) {
    isDeciding = true
    defer { isDeciding = false }
    idleWaiters.cancel(mail.cancelledWaiters)
    if Task.isCancelled { mode.isStopping = true }
    if mail.hasEndedTurn { mode.isTakingTurn = false }
    if mail.needsTurn { mode.mustTakeTurn = true }
    for (run, outcome) in mail.outcomes { take(outcome, of: run) }
    abandoned += mail.abandoned
    if gates.takeNews() {
      (mode.mayLease, mode.hasGateNews, mode.mustEnforceGates) = (true, true, true)
      if !gates.isClosedForAll { waits.end(.network) }
    }
    if mode.mustEnforceGates { enforceGates() }
    watchGates()
    if mode.isStopping { for run in slots.runs.values { run.stop(.shutdown) } }
    if waits.isRoomMissing, !waits.isWatchingForRoom {
      waits.isWatchingForRoom = true
      begin { await self.watchForRoom() }
    }
    if mode.mayLease { mode.mayHaveQueue = true }
    if mustLookForOthers {
      mode.looksForOthers = true
      begin { await self.lookForOthers() }
    }
    if reasons.mayHaveChanged, !reasons.isLooking, hub.isAnythingWatched {
      reasons.isLooking = true
      begin { await self.lookAtReasons() }
    }
    if !slots.isEmpty, !mode.ticks, !Task.isCancelled {
      mode.ticks = true
      begin { await self.tick() }
    }
  }

  /// Does what has to wait for the ledger or for disks, one turn at a time.
  ///
  /// Only turns change and publish the states of downloads that do not run. So what is read from the ledger in a turn
  /// stays true until the turn has published it.
  private func takeTurn() async {
    repeat {
      await recoverFromFailures()
      await endAbandonedRuns()
      await takeOverFromOthers()
      await compareReasons()
      await carryOutCalls()
      await makeDue()
    } while await exchange()
    await setTimer()
    await settleIdle()
    context.mailbox.postEndOfTurn(wakes: options.sabotage != .lostWakeUp)
  }

  /// Carries out commands, and publishes what they have changed before they return. Additions wait for the exchange.
  private func carryOutCalls() async {
    if commands.count == 0 { lostRemovals = [:] }
    var answers: [Mailbox.Answer] = []
    for call in context.mailbox.takeCalls() {
      switch call {
      case .addition(let addition):
        additions.append(addition)
      case .command(let command):
        // What was called before comes first.
        if !additions.isEmpty {
          let added = await addWaiting()
          tell(added)
          answers += added.answers
        }
        answers.append(await command.perform(self))
        mode.mayLease = true
        reasons.mayHaveChanged = true
      }
    }
    await publishChanges()
    for answer in answers { answer() }
  }

  /// Tells the loop to stop all runs at a checkpoint and to end.
  func beginShutdown() {
    mode.isStopping = true
    context.mailbox.wake()
  }

  /// - Throws: `.shutDown` after the shutdown has begun.
  func checkOpen() throws(DownloadError) {
    guard !mode.isStopping else { throw DownloadError.shutDown }
  }

  /// Makes the ledger rank by the pipeline's policy, unless this was done at the start.
  func rankOnce() async throws {
    guard !mode.isRanked else { return }
    mode.isRanked = true
    do {
      try await store.rank(by: pipeline.ranking)
    } catch {
      mode.isRanked = false
      throw error
    }
  }

  /// Stops the sources and closes the ledger, after the loop has ended.
  func close() async {
    for session in stages.takeAllSessions() { await session.stop() }
    try? await store.close()
  }

  // MARK: Ticks

  /// Reports progress and renews leases while something runs.
  private func tick() async {
    var renewed = time.now
    while !slots.isEmpty {
      guard (try? await time.sleep(for: options.progressInterval, purpose: .progress)) != nil else { break }
      let now = time.now
      for run in slots.runs.values { run.tick(at: now) }
      // A download may start because another one is smaller than expected.
      if learnSizes() {
        mode.mayLease = true
        reasons.mayHaveChanged = true
        context.mailbox.wake()
      }
      if now - renewed > options.lease / 3 {
        renewed = now
        await renewLeases()
      }
    }
    mode.ticks = false
    if !slots.isEmpty, !Task.isCancelled { context.mailbox.wake() }
  }

  /// Reclaims the downloads of dead owners, and publishes the changes of other owners, at regular intervals.
  private func maintain() async {
    while (try? await time.sleep(for: options.lease, purpose: .lease)) != nil {
      // Own leases are renewed first: after the machine has slept they may have expired.
      if !slots.isEmpty { await renewLeases() }
      mode.mustReclaim = true
      noteChangesByOthers()
    }
  }

  private func renewLeases() async {
    try? await store.renewLeases(until: time.date.addingTimeInterval(options.lease / .seconds(1)))
  }
}
