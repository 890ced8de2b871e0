internal import Foundation
internal import Synchronization

/// One leased download while it is worked on, from the lease to its ``Outcome``.
///
/// A run owns the task that does the work. What others read, such as status and speed, is its ``State``; what only the work
/// needs is in ``Findings``.
final class Run: Sendable {
  /// How wrong pieces are fetched again.
  enum Repair: Sendable {
    /// Only the missing pieces of the file, each by a request of its own.
    case pieces
    /// The file from a place that sends it only as a whole, because the others have sent wrong pieces.
    case whole
  }

  /// What the engine, callers and watchers read while the work goes on.
  struct State: Sendable {
    var record: DownloadRecord
    /// The request that the run works for. The record's request may be a later one: of that, this run uses only headers
    /// and, until its steps begin, the destination; the next run works for it.
    var request: DownloadRequest
    var publicState = DownloadState.transferring
    var meter = SpeedMeter()
    /// How far the present step has come, and what watchers were told of it.
    var stepProgress: StepProgress?
    var shownStepProgress: StepProgress?
    /// Measures the speed of the current body.
    var watch: SpeedWatch?
    /// The link that this run has refreshed, from before the ledger has it.
    var freshLink: URL?
    /// Whether discarded bytes may still be on disk, because the ledger could not be written.
    var mayHoldBytes = false
    /// The available bytes of the storage with which the file would have fitted beside the reserve of a gate.
    var neededRoom: Int64?
    /// The available bytes of the storage when the run failed for lack of space. They are not read later: there may be
    /// room by the time that the ledger, which is often on the same disk, has saved the failure.
    var roomAtFailure: Int64?
    /// Whether bytes were given up so that the ledger can save the outcome.
    var hasMadeRoom = false
    var stopReason: StopReason?
    /// Whether the work has ended because of a restart.
    var wasRestarted = false
    /// The stored path of the file that was published, or found in its place.
    var place: String?
    /// Whether the ledger has refused the outcome: another owner holds the download, or it was removed.
    var wasRefused = false
    /// What was in place when the run was stopped by a removal; it forgets a folder, which nothing replaces.
    var inPlaceAtRemoval: StoredArtifact?
    /// When another owner may take over the download, unless the lease is renewed; `nil` if leases do not expire.
    var leaseEnd: Duration?
    var task: Task<Void, Never>?
  }

  /// What the work has learnt. Transports and steps write here, too.
  struct Findings: Sendable {
    /// What the run has learnt of its places.
    var places = Places.Experience()
    /// Which places have brought the bytes on disk.
    var origins = ByteOrigins()
    /// The latest request of the downloader when a step has last asked for a small file: a copy from before is not used again.
    var fetched: [Fetched: UInt64] = [:]
    /// How the next transfer fetches wrong pieces again; `nil` if none were found.
    var repair: Repair?
    /// Whether a server has sent the whole file, with other bytes than those on disk.
    var hasOtherBytes = false
    /// Whether the bytes are of no use although the failure is not one of bytes.
    var dropsBytes = false
    /// Whether the server has confirmed that the published file has not changed.
    var isUnchanged = false
    /// Whether the server was asked about the published file, and its answer was of no use.
    var asksWithoutCondition = false
    /// The files that the run has put in their final places, each as it was then.
    var placed: [Artifact] = []
  }

  let context: EngineContext
  let stages: StartedPipeline
  let id: DownloadID
  /// The id and generation of the download, which tell it from others. See also ``partialKey``.
  let key: PartialKey
  /// The location of the storage, if the download belonged to none when it was leased; otherwise `nil`.
  let location: String?
  /// Whether the run was started by hand, and none was stopped for it: limits do not hold it up.
  let exceedsLimits: Bool
  /// The number of bytes on disk when the run began.
  let bytesAtStart: Int64
  /// The number of bytes on disk while bodies are written, on the transport's thread; -1 otherwise: the record has them then.
  let written = Atomic<Int64>(-1)
  /// The number of bytes that this run has received over the network.
  let fetched = Atomic<Int64>(0)
  /// The number of connections over which bytes arrive.
  let connections = Atomic<Int>(0)
  /// Whether a rate policy has paused the transfer since the speed was measured.
  let wasPaced = Atomic<Bool>(false)
  let state: Mutex<State>
  /// Taken after `state`, if both are.
  let findings = Mutex(Findings())
  /// Held while a state is set and told, so that states are told in the order in which they were set. Taken before `state`.
  private let telling = Mutex(())
  /// Whether the run has ended: its outcome is in the ledger, or will not be, because the lease is lost, or the ledger has
  /// failed while the downloader stops.
  private let ending = Monitor(false)

  /// - Parameters:
  ///   - begin: When the lease began, at the latest.
  ///   - location: The location for which the ledger has leased the download.
  init(
    _ record: DownloadRecord, leasedAt begin: Duration, for location: String? = nil, _ stages: StartedPipeline,
    _ context: EngineContext, exceedsLimits: Bool = false
  ) {
    self.exceedsLimits = exceedsLimits
    self.location = record.location == nil ? location : nil
    self.context = context
    self.stages = stages
    id = record.id
    key = PartialKey(id: record.id, generation: record.generation)
    bytesAtStart = record.partialRanges.byteCount
    state = Mutex(
      State(
        record: record, request: record.request,
        leaseEnd: context.store.leasesExpire ? begin + context.options.lease : nil))
  }

  var pipeline: Pipeline { stages.pipeline }
  var storage: any Storage { context.storage }
  var storageName: String { context.storageName }

  // MARK: The task

  /// Starts the work after an earlier run and the errands of the same download have ended. The outcome is posted to the mailbox.
  func start(after earlier: Run? = nil) {
    let task = context.executors.start { [self] in
      await earlier?.waitForEnd()
      let outcome: Outcome
      do {
        if try await context.onErrand.wait(for: id) { await readAgain() }
        // The wait is over: watchers measure it, and the time until the reply.
        if stopReason == nil { announce(state: .transferring) }
        outcome = await work()
      } catch {
        // The disk may not answer. What an errand has noted stays.
        await readAgain()
        outcome = await stopped(for: stopReason ?? .shutdown)
      }
      if outcome.isOutOfRoom {
        let room = await context.availableBytes()
        state.withLock { $0.roomAtFailure = room }
      }
      if case .published = outcome { context.furthest.forget(id) }
      context.mailbox.post(outcome, of: self)
    }
    let isStopped = state.withLock { state in
      state.task = task
      return state.stopReason != nil
    }
    if isStopped { task.cancel() }
  }

  /// Stops the work at once, also if it has not begun. The first reason counts, but replaces `tooSlow`.
  /// - Returns: Whether this call has stopped it.
  @discardableResult
  func stop(_ reason: StopReason) -> Bool {
    let (isFirst, task) = state.withLock { state -> (Bool, Task<Void, Never>?) in
      switch state.stopReason {
      // A run that is too slow may continue with a mirror, which must not override any other reason.
      case nil, .tooSlow: break
      default: return (false, nil)
      }
      state.stopReason = reason
      context.options.probe?.note(.stopped(id, reason: reason.name))
      if case .remove = reason { state.inPlaceAtRemoval = state.record.artifactInPlace?.unlessReused }
      return (true, state.task)
    }
    task?.cancel()
    return isFirst
  }

  /// The files that a removed download leaves in place.
  var leftArtifacts: [StoredArtifact] {
    state.withLock { state in
      let left = state.record.artifactsToDelete
      // It may have ended before it was stopped.
      guard left.isEmpty, state.record.phase != .finished else { return left }
      return state.inPlaceAtRemoval.map { [$0] } ?? []
    }
  }

  /// The stage that works for the download now.
  var presentStage: String {
    if case .processing(let step) = status.state { return step }
    return stages.source(for: read { $0.request.url })?.stage.name ?? storageName
  }

  /// The number of bytes on disk.
  var received: Int64 { state.withLock { received(in: $0) } }

  private func received(in state: State) -> Int64 {
    let written = written.load(ordering: .relaxed)
    return written >= 0 ? written : state.record.checkpoint.ranges.byteCount
  }

  /// Whether this run has stored bytes.
  var hasReceived: Bool { received > bytesAtStart }

  var stopReason: StopReason? { state.withLock { $0.stopReason } }

  /// The stored path of the file that was published, or found in its place.
  var place: String? { state.withLock { $0.place } }

  /// Whether stopping the run has completed a command that brings the download into a phase. One that waits again may also have
  /// been stopped for another reason, or have failed before.
  func hasBeenStopped(to phase: DownloadState.Phase) -> Bool {
    state.withLock { state in
      let record = state.record
      return !state.wasRefused && record.phase == phase && (phase != .waiting || state.wasRestarted)
    }
  }

  /// Whether the run has ended, and nothing more of it reaches the ledger.
  var isOver: Bool { ending.value }

  /// Takes over what an errand may have changed in the record since the lease.
  private func readAgain() async {
    guard let present = try? await context.store.record(id), present.generation == key.generation,
      present.owner == context.store.owner
    else { return }
    state.withLock { state in
      // A command may have changed the request meanwhile.
      state.record.request = state.record.request.takingOver(present.request, since: state.request)
      state.request = present.request
      (state.record.steps, state.record.refreshing) = (present.steps, present.refreshing)
      (state.record.earlierArtifact, state.record.leftArtifacts) = (present.earlierArtifact, present.leftArtifacts)
    }
  }

  /// Returns when the run has ended, which is after its outcome was saved.
  func waitForEnd() async { await ending.waitThroughCancellation { $0 } }

  /// Waits like ``waitForEnd()``, but can be cancelled, for example if a step commands its own download.
  /// - Throws: `CancellationError`.
  func waitForEndUnlessCancelled() async throws { try await ending.wait { $0 } }

  /// Marks the run as ended and resumes those that wait for it, in the order in which they began to wait.
  func markEnded() {
    state.withLock { $0.task = nil }
    ending.update { $0 = true }
  }

  // MARK: The record

  /// A copy of the whole record; ``read(_:)`` is cheaper.
  var record: DownloadRecord { state.withLock { $0.record } }

  /// Reads the record in place: a copy of the whole record costs dozens of reference counts.
  func read<Value>(_ body: (DownloadRecord) -> Value) -> Value { state.withLock { body($0.record) } }

  /// The request that the run works for.
  var request: DownloadRequest { state.withLock { $0.request } }

  /// The record as it is saved after the run: with the request that the run has worked for.
  var recordToSave: DownloadRecord {
    state.withLock { state in
      var record = state.record
      record.request = state.request
      return record
    }
  }

  /// Whether the request asks for another file than the run has worked for.
  var isOutdated: Bool { state.withLock { $0.record.request.asksForAnotherFile(than: $0.request) } }

  /// Changes the record that will be saved next.
  @discardableResult
  func update<Result>(_ change: (inout DownloadRecord) -> Result) -> Result {
    state.withLock { change(&$0.record) }
  }

  // MARK: Status

  var progress: TransferProgress { state.withLock { progress(in: $0) } }

  private func progress(in state: State) -> TransferProgress {
    TransferProgress(
      received: received(in: state), total: state.record.checkpoint.total,
      bytesPerSecond: state.meter.bytesPerSecond, fetched: fetched.load(ordering: .relaxed),
      connections: connections.load(ordering: .relaxed))
  }

  var status: DownloadStatus {
    state.withLock { state in
      // Read once: bytes arrive meanwhile.
      let progress = progress(in: state)
      return DownloadStatus(
        record: state.record, state: state.publicState, progress: progress, stepProgress: state.stepProgress,
        moreFetched: progress.fetched, in: storage)
    }
  }

  func announce(_ kind: DownloadEvent.Kind) { context.hub.publish(kind, of: self) }

  /// Publishes the present state again, because the request has changed.
  func announcePresentState() {
    telling.withLock { _ in announce(.state(state.withLock { $0.publicState })) }
  }

  func announce(state: DownloadState) {
    telling.withLock { _ in
      self.state.withLock { mine in
        mine.publicState = state
        (mine.stepProgress, mine.shownStepProgress) = (nil, nil)
      }
      announce(.state(state))
    }
  }

  /// Measures the speed, publishes the progress, and stops a transfer that is too slow or whose lease ends; called a few
  /// times a second.
  func tick(at now: Duration) {
    let fetched = fetched.load(ordering: .relaxed)
    let (failure, leaseEnd) = state.withLock { state -> (DownloadError?, Duration?) in
      let bytes = received(in: state)
      // The ledger keeps the time of the last checkpoint.
      if bytes != state.meter.latest ?? bytesAtStart { state.record.updatedAt = context.time.date }
      state.meter.record(bytes, at: now)
      // A transfer that the user has limited may be as slow as the limit says.
      if wasPaced.exchange(false, ordering: .relaxed) { state.watch?.restart(fetched, at: now) }
      return (state.watch?.check(fetched, at: now), state.leaseEnd)
    }
    // Early enough for what is in progress to end before.
    if let leaseEnd, leaseEnd <= now + context.options.lease / 6 { stop(.leaseEnds) }
    if let failure { stop(.tooSlow(failure)) }
    guard context.hub.isWatched(id) else { return }
    announce(.progress(progress))
    let step = state.withLock { state -> StepProgress? in
      guard state.stepProgress != state.shownStepProgress else { return nil }
      state.shownStepProgress = state.stepProgress
      return state.stepProgress
    }
    if let step { announce(.stepProgress(step)) }
  }

  /// Notes how far the present step has come.
  func note(_ progress: StepProgress) {
    state.withLock { state in
      // A step may have kept its context.
      if case .processing = state.publicState { state.stepProgress = progress }
    }
  }
}
