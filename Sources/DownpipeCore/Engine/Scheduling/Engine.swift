internal import Foundation

/// Decides what runs. One loop decides, everything else works: commands, outcomes of runs, answers of the ledger, gate
/// reports and timers come to its mailbox, and only the loop leases downloads.
actor Engine {
  nonisolated let context: EngineContext
  var stages: LiveStages
  var slots = Slots()
  var gates: Gates
  var waits = Waits()
  var idleWaiters = IdleWaiters()
  var outbox = Outbox()
  var reasons = WaitingReasons()
  var mode = Mode()

  /// What the engine as a whole is told to do.
  struct Mode: Sendable {
    var isSuspended = false
    var isStopping = false
    /// Whether the ledger has been told how to rank.
    var isRanked = false
    /// Whether a child task reports progress and renews leases.
    var ticks = false
    /// Whether something may have become leasable since the ledger was last asked.
    var mayLease = true
    /// Whether the ledger has failed, and is left alone until a timer has run out.
    var ledgerRests = false
    /// Whether that timer is set.
    var restTimerIsSet = false
  }

  init(pipeline: Pipeline, sessions: [any SourceSession], store: any LedgerStore, options: DownloaderOptions) {
    context = EngineContext(options: options, store: store, pipeline: pipeline)
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

  /// Runs until ``beginShutdown()``, or until its task is cancelled. Everything that happens is a child of this, or a
  /// run that it waits for.
  func run() async {
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        for observer in pipeline.observers {
          let events = hub.allEvents()
          group.addTask { await observer.observe(events) }
        }
        group.addTask { await self.maintain() }
        group.addTask { await self.followOthers() }
        watchGates(in: &group)
        await reclaim()
        await loop(in: &group)
        // Before the children are waited for: one of them may wait for a command, or for idleness.
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
      let mail = await context.mailbox.next()
      idleWaiters.cancel(mail.cancelledWaiters)
      if Task.isCancelled { mode.isStopping = true }
      for (run, outcome) in mail.outcomes { take(outcome, of: run, in: &group) }
      for (run, isGone) in mail.abandoned {
        await finish(run)
        // Not before the run is gone: a watcher that looks again must find nothing.
        if isGone { hub.publish(removalOf: run.read { $0.request }) } else { run.announce(state: .waiting(.elsewhere)) }
      }
      if let answer = mail.exchanged { await take(answer, in: &group) }
      await carryOutCommands()
      watchGates(in: &group)
      if mode.isStopping {
        for run in slots.runs.values { run.stop(.shutdown) }
        if slots.isEmpty && outbox.isEmpty { return }
      }
      enforceGates()
      await heedGates()
      if waits.isRoomMissing, !waits.isWatchingForRoom {
        waits.isWatchingForRoom = true
        group.addTask { await self.watchForRoom() }
      }
      exchange()
      await setTimer(in: &group)
      if reasons.mayHaveChanged, !reasons.isLooking, hub.isAnythingWatched {
        reasons.isLooking = true
        group.addTask { await self.lookAtReasons() }
      }
      if !slots.isEmpty, !mode.ticks, !Task.isCancelled {
        mode.ticks = true
        group.addTask { await self.tick() }
      }
      await settleIdle()
    }
  }

  /// Carries out commands, unless the ledger is handing out downloads at this moment: then after its answer.
  private func carryOutCommands() async {
    guard !outbox.isExchanging else { return }
    for command in context.mailbox.takeCommands() {
      await command.perform(self)
      mode.mayLease = true
      reasons.mayHaveChanged = true
    }
  }

  /// Ends everything at a checkpoint. The loop does the rest.
  func beginShutdown() {
    mode.isStopping = true
    context.mailbox.wake()
  }

  /// - Throws: `.shutDown` once the downloader ends.
  func checkOpen() throws(DownloadError) {
    guard !mode.isStopping else { throw DownloadError.shutDown }
  }

  /// Has the ledger rank by the pipeline's policy from now on, if that has not been done at the start.
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
      if now - renewed > options.lease / 3 {
        renewed = now
        await renewLeases()
      }
    }
    mode.ticks = false
    if !slots.isEmpty, !Task.isCancelled { context.mailbox.wake() }
  }

  /// Every now and then, gives back what dead owners hold and looks at what other owners have done.
  private func maintain() async {
    while (try? await time.sleep(for: options.lease, purpose: .lease)) != nil {
      // Ours first: after a sleep of the whole machine they would count as given up.
      if !slots.isEmpty { await renewLeases() }
      await reclaim()
      waits.mayHaveDelayed = true
      mode.mayLease = true
      await publishWatched()
      context.mailbox.wake()
    }
  }

  /// Looks at once at what other users of the ledger in this process have done.
  private func followOthers() async {
    guard let changes = store.changesByOthers else { return }
    for await _ in changes {
      waits.mayHaveDelayed = true
      mode.mayLease = true
      await publishWatched()
      context.mailbox.wake()
      // Many are not read for each commit of another one.
      if hub.watchedDownloads.count > 100 { try? await time.sleep(for: options.progressInterval, purpose: .reasons) }
    }
  }

  private func renewLeases() async {
    try? await store.renewLeases(until: time.date.addingTimeInterval(options.lease / .seconds(1)))
  }

  private func reclaim() async {
    do {
      _ = try await store.reclaim(at: time.date)
    } catch {
      outbox.noteFailure(DownloadError(error, as: .ledger, stage: context.ledgerName))
    }
  }
}
