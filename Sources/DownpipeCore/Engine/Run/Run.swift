internal import Synchronization

/// Why the engine ends a run that is under way.
enum StopReason: Sendable, Hashable {
  case gate(String)
  case limit(String)
  case pause
  case pauseAll
  case restart
  case cancel
  case remove
  case shutdown
  case suspend
  case lostLease
  case tooSlow(DownloadError)
}

/// One leased download while it is worked on, from the lease to its ``Outcome``.
///
/// It owns the task that does the work. What other tasks see of it, such as its status and its speed, is behind a lock;
/// what only the work needs is in the work's own variables.
final class Run: Sendable {
  struct State: Sendable {
    var record: DownloadRecord
    var publicState = DownloadState.transferring
    var meter = SpeedMeter()
    /// Watches the speed of the body that is being received.
    var watch: SpeedWatch?
    /// Whether this run has just been given its link.
    var hasFreshLink = false
    /// The place that is asked, counted from the request's URL through its mirrors.
    var place = 0
    /// Whether bytes that should be gone may still be there, since the ledger could not let go of them.
    var mayHoldBytes = false
    var stopReason: StopReason?
    /// Whether its download was removed when it had ended.
    var wasRemoved = false
    var task: Task<Void, Never>?
    var hasEnded = false
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var lastWaiter: UInt64 = 0
  }

  let context: EngineContext
  let stages: StartedPipeline
  let id: DownloadID
  let key: PartialKey
  /// The bytes on disk when the run began.
  let bytesAtStart: Int64
  /// Bytes on disk; written on the transport's thread for each chunk.
  let received: Atomic<Int64>
  /// Bytes received over the network by this run.
  let fetched = Atomic<Int64>(0)
  let state: Mutex<State>

  init(_ record: DownloadRecord, _ stages: StartedPipeline, _ context: EngineContext) {
    self.context = context
    self.stages = stages
    id = record.id
    key = record.partialKey
    bytesAtStart = record.checkpoint.ranges.prefixLength
    received = Atomic(bytesAtStart)
    state = Mutex(State(record: record))
  }

  var pipeline: Pipeline { stages.pipeline }
  var storage: any Storage { context.storage }

  // MARK: The task

  /// Begins the work, once an earlier run of the same download has ended. The outcome goes to the mailbox.
  func start(after earlier: Run? = nil) {
    let task = Task {
      await earlier?.end()
      let outcome = await work()
      context.mailbox.post(outcome, of: self)
    }
    let isStopped = state.withLock { state in
      state.task = task
      return state.stopReason != nil
    }
    if isStopped { task.cancel() }
  }

  /// Asks the work to end, at once; later calls change nothing. A stop before the work begins counts as well.
  func stop(_ reason: StopReason) {
    let task = state.withLock { state -> Task<Void, Never>? in
      switch state.stopReason {
      // A transfer that is too slow might go on at a mirror; what anything else commands must not be lost by that.
      case nil, .tooSlow: break
      default: return nil
      }
      state.stopReason = reason
      return state.task
    }
    task?.cancel()
  }

  /// Whether its download was removed when it had ended.
  var wasRemoved: Bool {
    get { state.withLock { $0.wasRemoved } }
    set { state.withLock { $0.wasRemoved = newValue } }
  }

  /// The first reason given.
  var stopReason: StopReason? { state.withLock { $0.stopReason } }

  /// Returns once the outcome is in the ledger, and nothing of the run is left.
  func end() async {
    await withCheckedContinuation { wait($0, makeWaiter()) }
  }

  /// The same for a caller that may be cancelled, as a step is that commands its own download.
  /// - Throws: `CancellationError`.
  func endUnlessCancelled() async throws {
    let number = makeWaiter()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        wait(continuation, number)
        // The handler may have run before there was anything to resume.
        if Task.isCancelled { release(number) }
      }
    } onCancel: {
      release(number)
    }
    try Task.checkCancellation()
  }

  private func release(_ number: UInt64) {
    state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
  }

  private func makeWaiter() -> UInt64 {
    state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
  }

  private func wait(_ continuation: CheckedContinuation<Void, Never>, _ number: UInt64) {
    let isOver = state.withLock { state in
      if state.hasEnded { return true }
      state.waiters[number] = continuation
      return false
    }
    if isOver { return continuation.resume() }
  }

  /// Lets those go on who wait for the end.
  func hasEnded() {
    let waiters = state.withLock { state in
      state.hasEnded = true
      state.task = nil
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  // MARK: The record

  /// A copy of the whole record; ``read(_:)`` is cheaper.
  var record: DownloadRecord { state.withLock { $0.record } }

  /// Reads something of the record in place: a copy of all of it costs dozens of reference counts.
  func read<Value>(_ body: (DownloadRecord) -> Value) -> Value { state.withLock { body($0.record) } }

  /// Changes the record that will be saved next.
  @discardableResult
  func update<Result>(_ change: (inout DownloadRecord) -> Result) -> Result {
    state.withLock { change(&$0.record) }
  }

  // MARK: What others see

  /// How far it is, with the speed.
  var progress: TransferProgress { state.withLock { progress(in: $0) } }

  private func progress(in state: State) -> TransferProgress {
    TransferProgress(
      received: received.load(ordering: .relaxed), total: state.record.checkpoint.total,
      bytesPerSecond: state.meter.bytesPerSecond)
  }

  /// Everything there is to know about it now.
  var status: DownloadStatus {
    state.withLock { state in
      DownloadStatus(
        record: state.record, state: state.publicState, progress: progress(in: state),
        moreFetched: fetched.load(ordering: .relaxed))
    }
  }

  /// Publishes an event.
  func announce(_ kind: DownloadEvent.Kind) { context.hub.publish(kind, of: self) }

  /// Publishes a new state.
  func announce(state: DownloadState) {
    self.state.withLock { $0.publicState = state }
    announce(.state(state))
  }

  /// Measures the speed and publishes the progress; called a few times a second. A transfer that is too slow is stopped.
  func tick(at now: Duration) {
    let bytes = received.load(ordering: .relaxed)
    let fetched = fetched.load(ordering: .relaxed)
    let failure = state.withLock { state -> DownloadError? in
      state.meter.record(bytes, at: now)
      return state.watch?.check(fetched, at: now)
    }
    if let failure { stop(.tooSlow(failure)) }
    if context.hub.isWatched(id) { announce(.progress(progress)) }
  }
}

extension DownloadStatus {
  /// The status of a record, in a state that only the engine knows in full.
  init(record: DownloadRecord, state: DownloadState, progress: TransferProgress? = nil, moreFetched: Int64 = 0) {
    self.init(
      id: record.id, request: record.request, state: state,
      progress: progress
        ?? TransferProgress(received: record.checkpoint.ranges.byteCount, total: record.checkpoint.total),
      attempts: record.attempts, resumedFrom: record.resumedFrom, bytesFetched: record.bytesFetched + moreFetched,
      name: (record.phase == .finished ? record.steps.artifact?.name : nil) ?? record.request.destination.finalName
        ?? record.steps.artifact?.name ?? record.request.destination.name
        ?? record.checkpoint.name,
      createdAt: record.createdAt, updatedAt: record.updatedAt)
  }
}
