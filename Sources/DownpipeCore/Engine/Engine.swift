internal import Foundation
internal import Synchronization

/// Decides what runs. One actor; the work itself runs outside of it, in child tasks of ``run()``.
actor Engine {
  let options: DownloaderOptions
  let store: any LedgerStore
  let hub = EventHub()
  let storage: any Storage
  let trust = RangeMemory()

  var pipeline: Pipeline
  /// The sources as they were started for this run, in the pipeline's order.
  var startedSources: [any Source]
  /// Sources that were replaced; transfers may still use them, so they are stopped last.
  var retiredSources: [(epoch: Int, source: any Source)] = []
  var sourceEpoch = 0
  var gates: [GateSlot]

  var running: [DownloadID: Run] = [:]
  var counts = RunningDownloads()
  /// Runs whose work is over, until the main loop has given their places to others.
  let freed = Mutex<[Run]>([])
  /// Whether the ledger is handing out downloads right now: they are in nobody's sight until it returns.
  var isClaiming = false
  /// Commands that wait for what the ledger is handing out to be registered.
  private var claimWaiters: [CheckedContinuation<Void, Never>] = []
  /// Commands for a download that the ledger has handed out but that has not been registered yet.
  var latched: [PartialKey: StopReason] = [:]
  /// Commands for all downloads, or those with a tag, that came while the ledger was handing out some.
  var latchedForAll: [(tag: String?, reason: StopReason)] = []
  /// Whether policies were replaced while the ledger was handing out downloads.
  var limitsHaveChanged = false
  /// While this is above zero nothing is started.
  var holds = 0
  /// Runs whose last state the ledger did not take; it is told again.
  var unsaved: [Run] = []
  /// How far each download ever was that has failed since; bounded.
  var furthest: [DownloadID: Int64] = [:]
  /// What waiting downloads of this run are short of.
  var missing: [DownloadID: MissingResource] = [:]
  var isWatchingForRoom = false
  /// How often the gates had spoken when the network was last looked for.
  var gateReports = 0
  var isSuspended = false
  var isStopping = false
  var lastArrival: Int64 = 0
  var ledgerFailures = 0
  var lastLedgerError: DownloadError?
  var idleWaiters: [UInt64: CheckedContinuation<Result<Void, any Error>, Never>] = [:]
  var lastIdleWaiter: UInt64 = 0
  /// Waiters whose task was cancelled, until the main loop has let them go.
  let cancelled = Mutex<Set<UInt64>>([])
  /// The due times for which somebody sleeps.
  private var armed: Set<Date> = []
  /// When the ledger was last asked for what is due.
  private var lastLook: Date?
  /// Whether the ledger may hold a due time that no timer is armed for.
  private var mayHaveDelayed = true
  private var tickerRuns = false

  /// Asks the main loop to look around; what there is to see is kept elsewhere, so one in the buffer is enough.
  private let wakeStream: AsyncStream<Void>
  private let wakes: AsyncStream<Void>.Continuation

  init(pipeline: Pipeline, sources: [any Source], store: any LedgerStore, options: DownloaderOptions) {
    self.pipeline = pipeline
    self.startedSources = sources
    self.store = store
    self.options = options
    self.storage = pipeline.storage
    self.gates = []
    (wakeStream, wakes) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    for gate in pipeline.gates {
      gates.append(GateSlot(gate))
    }
  }

  /// Looks for work soon.
  nonisolated func wake() { wakes.yield() }

  // MARK: The main loop

  /// Runs until ``shutdown()``, or until its task is cancelled. Everything that happens is a child of this.
  func run() async {
    await withDiscardingTaskGroup { group in
      for observer in pipeline.observers {
        let events = hub.allEvents()
        group.addTask { await observer.observe(events) }
      }
      group.addTask { await self.maintain() }
      startWatches(in: &group)
      await reclaim()
      wake()
      for await _ in wakeStream {
        releaseCancelledWaiters()
        takeFreedPlaces()
        startWatches(in: &group)
        if isStopping || Task.isCancelled { break }
        enforceGates()
        await heedGates()
        if !isWatchingForRoom, missing.values.contains(where: { $0.what == .disk }) {
          isWatchingForRoom = true
          group.addTask { await self.watchForRoom() }
        }
        await startWork(in: &group)
        await armTimer(in: &group)
        await settleIdle()
      }
      for run in running.values { run.stopSignal.stop(.shutdown) }
      while let run = running.values.first { await run.settlement() }
      takeFreedPlaces()
      hub.finish()
      group.cancelAll()
    }
    finishIdleWaiters(.failure(DownloadError(.shutDown, "the downloader was shut down")))
  }

  private func startWork(in group: inout DiscardingTaskGroup) async {
    await saveAgain()
    // Only a claim of this very round has made ready what was due by then.
    lastLook = nil
    guard !isSuspended, holds == 0 else { return }
    let claimed: [DownloadRecord]
    isClaiming = true
    do {
      claimed = try await claim()
      if unsaved.isEmpty { ledgerFailures = 0 }
    } catch {
      claimed = []
      ledgerFailed(DownloadError(error, as: .ledger, stage: pipeline.ledger.name))
    }
    isClaiming = false
    for record in claimed {
      let run = Run(record, at: options.time.now, sourceEpoch: sourceEpoch)
      // A run whose lease was lost without its noticing: it has to be gone before its bytes are touched again.
      let old = running[record.id]
      old?.stopSignal.stop(.lostOwnership)
      running[record.id] = run
      counts.insert(run.candidate)
      stopAtOnce(run)
      let attempt = attempt(for: run)
      group.addTask {
        await old?.settlement()
        await self.work(attempt)
      }
    }
    latched = [:]
    latchedForAll = []
    for waiter in claimWaiters { waiter.resume() }
    claimWaiters = []
    if limitsHaveChanged {
      limitsHaveChanged = false
      enforceLimits()
    }
    if !running.isEmpty, !tickerRuns {
      tickerRuns = true
      group.addTask { await self.tick() }
    }
  }

  /// Returns once everything that the ledger is handing out is registered.
  func claimIsOver() async {
    guard isClaiming else { return }
    await withCheckedContinuation { claimWaiters.append($0) }
  }

  /// Carries out what was commanded while nobody could see the run.
  private func stopAtOnce(_ run: Run) {
    if isSuspended || holds > 0 { run.stopSignal.stop(.suspend) }
    if let reason = latched[run.key] { run.stopSignal.stop(reason) }
    for command in latchedForAll where command.tag.map(run.candidate.tags.contains) ?? true {
      run.stopSignal.stop(command.reason)
    }
  }

  /// Tells the ledger again what it did not take.
  private func saveAgain() async {
    for run in unsaved {
      do {
        _ = try await store.save(run.record, [.state, .checkpoint, .steps], at: options.time.date)
        unsaved.removeAll { $0 === run }
        if let status = try? await status(of: run.id) {
          hub.publish(stateOf: status)
        }
      } catch {
        return ledgerFailed(DownloadError(error, as: .ledger, stage: pipeline.ledger.name))
      }
    }
  }

  private func claim() async throws -> [DownloadRecord] {
    let rules = gates.map(\.rule)
    // A gate that is closed for all needs no look into the ledger.
    for case .all(.closed) in rules.map(\.extent) { return [] }
    let selector = LeaseSelector(policies: pipeline.limits, rules: rules, running: counts)
    let now = options.time.date
    lastLook = now
    return try await store.lease(
      LeaseRequest(
        now: now, until: now.addingTimeInterval(options.lease / .seconds(1)), location: storage.location,
        select: { selector.select($0) }))
  }

  private func ledgerFailed(_ error: DownloadError) {
    lastLedgerError = error
    ledgerFailures += 1
  }

  /// Wakes the loop when the next download becomes due. The ledger is only asked when there may be something new.
  private func armTimer(in group: inout DiscardingTaskGroup) async {
    guard mayHaveDelayed || ledgerFailures > 0 else { return }
    mayHaveDelayed = false
    let now = options.time.date
    var due: Date?
    do {
      // After the time that was looked up to: what has become due since then must not be forgotten.
      due = try await store.nextDue(after: lastLook ?? now)
    } catch {
      mayHaveDelayed = true
      due = now.addingTimeInterval(1)
    }
    if ledgerFailures > 0 { due = now.addingTimeInterval(1) }
    guard let due, armed.insert(due).inserted else { return }
    let delay = Duration.seconds(min(max(0, due.timeIntervalSince(now)), 400 * 86_400))
    group.addTask { await self.sleep(delay, until: due) }
  }

  private func sleep(_ delay: Duration, until due: Date) async {
    let slept: Void? = try? await options.time.sleep(for: delay)
    armed.remove(due)
    guard slept != nil else { return }
    mayHaveDelayed = true
    wake()
  }

  /// Every now and then, gives back what dead owners hold and looks at what other owners have done.
  private func maintain() async {
    while (try? await options.time.sleep(for: options.lease)) != nil {
      // Ours first: after a sleep of the whole machine they would count as given up.
      if !running.isEmpty { await renewLeases() }
      await reclaim()
      mayHaveDelayed = true
      await publishWaiting()
      wake()
    }
  }

  private func renewLeases() async {
    try? await store.renewLeases(until: options.time.date.addingTimeInterval(options.lease / .seconds(1)))
  }

  private func reclaim() async {
    do {
      _ = try await store.reclaim(at: options.time.date)
    } catch {
      ledgerFailed(DownloadError(error, as: .ledger, stage: pipeline.ledger.name))
    }
  }

  // MARK: Gates

  private func startWatches(in group: inout DiscardingTaskGroup) {
    for index in gates.indices where !gates[index].isWatched {
      gates[index].isWatched = true
      let slot = gates[index]
      group.addTask {
        await slot.stop.guarding {
          do {
            try await slot.gate.watch { rule in
              slot.latest.report(rule)
              self.wake()
            }
          } catch is CancellationError {
          } catch {
            // The gate no longer knows: it does not veto by guess.
            slot.latest.report(.open)
            self.wake()
          }
        }
      }
    }
  }

  /// Suspends what a closed gate does not allow any more.
  func enforceGates() {
    // A gate that has just been put in closes nothing before it has spoken.
    for slot in gates where slot.latest.hasReported {
      for run in running.values {
        if case .closed(let reason) = slot.rule.verdict(for: run.candidate) { run.stopSignal.stop(.gate(reason)) }
      }
    }
  }

  // MARK: Work

  private nonisolated func work(_ attempt: Attempt) async {
    let run = attempt.run
    let result: Result<Artifact, any Error> = await run.stopSignal.guarding {
      do {
        return .success(try await attempt.perform())
      } catch {
        return .failure(error)
      }
    }
    await Settlement(attempt: attempt, engine: self).settle(result)
  }

  private func attempt(for run: Run) -> Attempt {
    var current = pipeline
    current.sources = startedSources
    return Attempt(run: run, pipeline: current, store: store, options: options, hub: hub, trust: trust)
  }

  /// The work on a download has ended, and its new state is in the ledger.
  func settled(_ run: Run, unsaved error: DownloadError?) async {
    if let error {
      unsaved.append(run)
      ledgerFailed(error)
    }
    let record = run.record
    if record.notBefore != nil { mayHaveDelayed = true }
    if record.phase != .waiting { furthest[run.id] = nil }
    if running[run.id] === run { running[run.id] = nil }
    let hadPlace = takePlace(from: run)
    run.settle()
    // Who comes next has been looked for when the place became free.
    if hadPlace || error != nil || running.isEmpty { wake() }
    if !retiredSources.isEmpty { await stopIdleSources() }
    // Last: a disk that does not answer holds up nobody.
    if record.awaited != nil || !missing.isEmpty { await noteMissing(of: run) }
  }

  /// Stops the sources that were replaced and that no run uses any more.
  private func stopIdleSources() async {
    let oldest = running.values.map(\.sourceEpoch).min() ?? sourceEpoch
    let idle = retiredSources.filter { $0.epoch < oldest }
    retiredSources.removeAll { $0.epoch < oldest }
    for retired in idle { await retired.source.stop() }
  }

  /// Whether a failed attempt has brought a download further than it ever was.
  func hasProgressed(_ run: Run, to bytes: Int64) -> Bool {
    let before = max(furthest[run.id] ?? 0, run.bytesAtStart)
    guard bytes > before else {
      if furthest[run.id] != nil || furthest.count < 100_000 { furthest[run.id] = before }
      return false
    }
    if furthest[run.id] != nil || furthest.count < 100_000 { furthest[run.id] = bytes }
    return true
  }

  // MARK: The ticker

  /// Reports progress, asks for checkpoints and renews leases while something runs.
  private func tick() async {
    var renewed = options.time.now
    while !running.isEmpty {
      guard (try? await options.time.sleep(for: options.progressInterval)) != nil else { break }
      let now = options.time.now
      for run in running.values { tick(run, at: now) }
      if now - renewed > options.lease / 3 {
        renewed = now
        await renewLeases()
      }
    }
    tickerRuns = false
    if !running.isEmpty { wake() }
  }

  private func tick(_ run: Run, at now: Duration) {
    let received = run.received.load(ordering: .relaxed)
    let enough = run.checkpointIsDue.exchange(false, ordering: .relaxed)
    let request = run.state.withLock { state -> AsyncStream<Void>.Continuation? in
      state.speed.record(received, at: now)
      let isDue = now - state.lastCheckpointAt >= options.checkpoints.interval
      guard enough || isDue, received > state.lastCheckpointBytes else { return nil }
      state.lastCheckpointAt = now
      state.lastCheckpointBytes = received
      return state.checkpointRequest
    }
    request?.yield()
    if hub.isWatched(run.id) {
      hub.publish(.progress(run.progress), of: run)
    }
  }

  /// Ends everything at a checkpoint. The main loop does the rest.
  func beginShutdown() {
    isStopping = true
    wake()
  }
}
