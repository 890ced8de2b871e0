internal import Foundation
internal import Synchronization

/// What the engine knows, and how it decides.
///
/// Events come one at a time, and each is answered with actions that others carry out: a decision waits for nothing, and
/// nothing can happen in the middle of one. It knows no clock; the time comes with the event.
///
/// What has to ask the ledger, and then decides, is a ``Job``; what has to ask a disk is an ``Errand``. A turn is one pass over all that may need jobs (see
/// ``TurnPart``): ``nextJob(at:)`` decides which job comes next, and what a job has found is an event that is taken in one
/// step, too. Additions and commands, outcomes and leases meet the ledger in turns only.
struct EngineState: Sendable {
  var stages: LiveStages
  var slots = Slots()
  var gates: Gates
  var waits = Waits()
  var health = MachineHealth() {
    didSet { noteHealth(since: oldValue) }
  }
  var outbox = Outbox()
  var commands = CommandQueue()
  /// The turn in progress, or the next one.
  var turn = Turn()
  /// What the turn does now; `nil` if it has to decide.
  private(set) var job: Job?
  /// Downloads to add in this turn, beside its exchange, or before the next command.
  var additions: [Addition] = []
  var idleWaiters = IdleWaiters()
  var errands = Errands()
  var reasons = ReasonNews()
  /// Downloads whose states have to be read from the ledger and published, with the last known requests of those that may
  /// have been removed.
  var unpublished: [DownloadID: DownloadRequest?] = [:]
  /// Downloads whose runs were stopped for a change and had a slot: they are leased before others.
  var returning = Returning()
  /// Selects the downloads of the exchange in progress; `nil` if it leases none.
  var selector: LeaseSelector?
  /// Runs that the ledger had refused and that have been cleaned up; the next turn ends them.
  var cleanedUp: [Run] = []
  var mode: Mode
  /// What has to be done; taken out when it begins.
  var due: Work = [.leases, .timer, .reclaim, .deletions]
  /// Handed to runs and jobs. Decisions use the options, names and paths, ask the hub who is watched, and set the policies,
  /// rates and limits that runs read.
  let context: EngineContext
  private var actions: [Action] = []

  /// The state of the engine apart from its downloads.
  struct Mode: Sendable {
    enum Phase: Sendable, Hashable {
      case running, suspended
      case stopping(isSuspended: Bool)
    }
    /// A ledger that has failed is not used until a timer fires.
    enum LedgerUse: Sendable { case used, rests, restsUntilTimer }
    /// Whether changes by other processes are looked for; whether the ledger can report any.
    enum Others: Sendable { case quiet, lookedFor, unheard }

    var phase: Phase
    var ledger = LedgerUse.used
    var others = Others.quiet
    /// Whether a turn is being taken.
    var isTakingTurn = false
    /// Whether the ledger ranks by the pipeline's policy, or has done so by an earlier one.
    var isRanked: Bool
    /// Whether downloads may be queued, also for other owners.
    var mayHaveQueue = true
    /// The number of calls that suspend the downloads, or end that.
    var suspensions = 0
    /// When leases were last renewed, while something runs and progress is reported.
    var renewed: Duration?
    /// When an admission policy is asked again.
    var admissionDue: Duration?

    /// The ledger has failed.
    mutating func restLedger() { if ledger == .used { ledger = .rests } }

    var isSuspended: Bool {
      get { phase == .suspended || phase == .stopping(isSuspended: true) }
      set { phase = isStopping ? .stopping(isSuspended: newValue) : newValue ? .suspended : .running }
    }
    var isStopping: Bool { if case .stopping = phase { true } else { false } }
  }

  /// What the next turn, or a part of it, has to do.
  struct Work: OptionSet, Sendable {
    let rawValue: UInt8

    /// A turn.
    static let turn = Work(rawValue: 1)
    /// The runs are compared with the gates: one, or what it decides by, has changed.
    static let gates = Work(rawValue: 1 << 1)
    /// Downloads are leased: one may have become leasable since the last lease.
    static let leases = Work(rawValue: 1 << 2)
    /// A timer is set: the ledger may have a due time without one.
    static let timer = Work(rawValue: 1 << 3)
    /// Downloads of dead owners are reclaimed.
    static let reclaim = Work(rawValue: 1 << 4)
    /// Changes of other users of the ledger are taken over.
    static let others = Work(rawValue: 1 << 5)
    /// Files were renamed without the ledger's knowledge, because it has failed.
    static let renames = Work(rawValue: 1 << 6)
    /// What ended processes may have left on the disk is deleted.
    static let deletions = Work(rawValue: 1 << 7)
  }

  /// A point in time, on both clocks.
  struct Instant: Sendable {
    /// Of ``TimeSource/now``; read before the date, so that a timer may fire early, which does no harm, and never late.
    var now: Duration
    var date: Date
  }

  init(_ pipeline: Pipeline, sessions: [any SourceSession], _ context: EngineContext) {
    stages = LiveStages(pipeline, sessions: sessions)
    gates = Gates(pipeline.gates)
    let startsSuspended = context.options.startsSuspended
    mode = Mode(
      phase: startsSuspended ? .suspended : .running,
      // Otherwise this was done before.
      isRanked: !startsSuspended)
    self.context = context
  }

  /// Decides what an event means. Runs are told at once to stop, and callers that have failed get their errors; what else
  /// has to be done is in ``takeActions()``.
  mutating func receive(_ event: Event, at instant: Instant) {
    switch event {
    case .ended(let run, let outcome): endWork(of: run, outcome, at: instant)
    case .cleanedUp(let run): cleanedUp.append(run)
    case .reported(let gate, let rule): if gates.report(rule, of: gate) { noteGates() }
    case .stop: stop()
    case .called(let call): take(call)
    case .addition(let addition): take(addition)
    case .cancelledCall(let number): cancelCall(number)
    case .turnGoesOn: job = nextJob(at: instant)
    case .performed(let conclude): job = conclude(&self, instant)
    case .turnEnded: mode.isTakingTurn = false
    case .errandEnded(let errand, let decision, let changes): end(errand, decision, changes)
    case .exchanged(let answer, let changed): take(answer, changed: changed, at: instant)
    case .fired(let timer, let due): fire(timer, due, at: instant)
    case .room(let bytes): take(room: bytes, at: instant)
    case .lookedForOthers(let mayMatter): endLook(mayMatter: mayMatter, at: instant)
    case .maintained:
      due.insert(.reclaim)
      removeRefusedCopies()
      set(.lease, after: context.options.lease, at: instant)
      tidy()
    case .changedByOthers: due.insert([.others, .timer, .leases, .turn])
    case .queue(let mayExist): mode.mayHaveQueue = mayExist
    case .ranked: mode.isRanked = true
    case .changed(let changes): note(changes)
    case .ledgerFailed(let error): outbox.noteFailure(error)
    case .replaced(let replacement): replace(replacement)
    case .suspended: suspend()
    case .suspensionEnds: mode.suspensions += 1
    case .suspensionEnded(let call, let isFirst):
      if isFirst { due.insert(.renames) }
      if mode.suspensions == call { unsuspend() }
    case .awaitsIdleness(let waiter): idleWaiters.insert(waiter)
    case .awaitsIdlenessNoLonger(let waiter): idleWaiters.remove(waiter)
    case .over:
      commands.refuseAll()
      idleWaiters.finish(.failure(DownloadError.shutDown))
    case .news(let audience, let needsTurn): look(audience, needsTurn: needsTurn, at: instant)
    }
  }

  /// Removes and returns what has to be done, in this order.
  mutating func takeActions() -> [Action] {
    defer { actions = [] }
    return actions
  }

  mutating func add(_ action: Action) { actions.append(action) }

  /// Whether to wait after a failure of the ledger; a timer ends the wait after a second.
  var ledgerNeedsRest: Bool { mode.ledger != .used && !mode.isStopping }

  /// Whether a turn has found something that the loop has to begin.
  var hasNews: Bool {
    due.contains(.gates) || (due.contains(.turn) && !mode.isTakingTurn)
      || (waits.isRoomMissing && !waits.isWatchingForRoom) || (slots.hasRuns && mode.renewed == nil)
  }

  /// Whether everything has ended.
  var isOver: Bool {
    mode.isStopping && !mode.isTakingTurn && !slots.hasRuns && outbox.isEmpty
      && (errands.count == 0 || context.areErrandsGivenUp.load(ordering: .relaxed))
  }

  /// Notes that a download may have become leasable.
  mutating func mayLeaseMore() {
    due.insert(.leases)
    reasons.mayHaveChanged = true
  }

  // MARK: News

  private mutating func stop() {
    mode.phase = .stopping(isSuspended: mode.isSuspended)
    context.stopsErrands.store(true, ordering: .relaxed)
    for run in slots.runs.values { run.stop(.shutdown) }
  }

  /// Begins what the news asks for.
  private mutating func look(_ audience: Audience, needsTurn: Bool, at instant: Instant) {
    if needsTurn || !commands.ready.isEmpty { due.insert(.turn) }
    if due.remove(.gates) != nil {
      for run in slots.runs.values { enforceGates(for: run) }
    }
    for gate in gates.takeUnwatched() { add(.watch(gate)) }
    if !waits.isWatchingForRoom { watchForRoom(at: instant) }
    if mode.others == .quiet, !mode.isStopping, mode.mayHaveQueue || audience.isAnythingAwaited {
      mode.others = .lookedFor
      add(.lookForOthers)
    }
    if audience.isAnythingWatched, mayTellReasons { due.insert(.turn) }
    if slots.hasRuns, mode.renewed == nil {
      mode.renewed = instant.now
      set(.progress, after: context.options.progressInterval, at: instant)
    }
    if due.contains(.turn), !mode.isTakingTurn {
      due.remove(.turn)
      mode.isTakingTurn = true
      add(.takeTurn)
    }
  }

  // MARK: Gates

  /// Notes that the gates decide by other rules.
  mutating func noteGates() {
    due.insert([.leases, .gates])
    reasons.isUrgent = true
    context.policies.gateFailure = gates.failure
    if !gates.isClosedForAll { waits.end(.network) }
  }

  /// Suspends a run that a closed gate does not permit.
  mutating func enforceGates(for run: Run) {
    #if SABOTAGE
      if context.options.sabotage == .runsPastGates { return }
    #endif
    guard !gates.watched.isEmpty, let candidate = slots.candidate(of: run), let reason = gates.reasonToStop(candidate)
    else { return }
    run.stop(.gate(id: reason.id, text: reason.text))
  }

  // MARK: The machine

  /// Lets downloads start, and tells why they wait, after the machine's health has changed.
  private mutating func noteHealth(since before: MachineHealth) {
    guard health.fault != before.fault || health.trial != before.trial else { return }
    due.insert([.leases, .turn])
    reasons.isUrgent = true
    guard health.fault != before.fault else { return }
    context.machineFault.update { $0 = health.fault }
    context.store.note(machineFault: health.fault)
  }

  /// Takes what the end of a run says about the machine.
  mutating func judgeMachine(by run: Run, _ outcome: Outcome, at instant: Instant) {
    switch outcome {
    case .failed(let error, .giveBack):
      context.options.probe?.note(.gaveBack(run.id))
      armAdmission([health.failed(run.id, error, at: instant.now)], at: instant)
    case .published:
      context.hostFaults.reached()
      health.ended(run.id, isFinished: true)
    case .failed, .stopped, .notOwned: health.ended(run.id, isFinished: false)
    }
  }

  // MARK: Sizes and limits

  /// Updates the sizes by which gates and limits decide.
  mutating func learnSizes() {
    guard slots.learnSizes() else { return }
    // Another download may start because this one is smaller than expected.
    mayLeaseMore()
    due.insert(.gates)
  }

  /// Ranks the running downloads by what is known now, such as the size that the server has stated.
  mutating func rankRuns() {
    let ranking = stages.current.pipeline.ranking
    for run in slots.runs.values {
      run.update { $0.rank = ranking.rank($0.rankingContext) }
      slots.update(run)
    }
  }

  /// Applies the limits to the running downloads in order of rank; downloads beyond a limit go back to waiting.
  mutating func enforceLimits(at instant: Instant) {
    rankRuns()
    var admitted = RunningDownloads()
    let limits = stages.limits
    for run in slots.ranked {
      guard let candidate = slots.candidate(of: run) else { continue }
      if let refusal = limits.stops(candidate, beside: admitted, at: instant.now) {
        run.stop(.limit(id: refusal.id, text: refusal.text))
      } else {
        admitted.insert(candidate)
      }
    }
  }

  /// Why a due download waits.
  func reason(for candidate: Candidate, at now: Duration) -> WaitingReason {
    if mode.isSuspended { return .suspended }
    if let fault = health.fault { return WaitingReason(machine: fault) }
    if let gate = gates.reason(for: candidate) { return .gate(id: gate.id, text: gate.text) }
    if let limit = stages.limits.refusal(candidate, beside: slots.counts, at: now) {
      return .limit(id: limit.id, text: limit.text)
    }
    return .turn
  }
}
