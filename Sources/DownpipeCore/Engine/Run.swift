internal import Synchronization

/// Why the engine ends work that is under way.
enum StopReason: Sendable, Hashable {
  case gate(String)
  case limit(String)
  case pause
  case cancel
  case remove
  case shutdown
  case suspend
  case lostOwnership
}

/// One claimed download while it is worked on: what the work, the ticker and the watchers share.
final class Run: Sendable {
  struct State: Sendable {
    var record: DownloadRecord
    var publicState: DownloadState
    var speed = SpeedMeter()
    var lastCheckpointAt: Duration
    var lastCheckpointBytes: Int64 = 0
    /// The bytes that were flushed for certain, and what a failure to flush takes the record back to.
    var durableBytes: Int64
    /// Set when a flush has failed: a later one that succeeds says nothing about the bytes before it.
    var flushHasFailed = false
    /// Asks the transfer under way to write a checkpoint; its buffer of one coalesces requests.
    var checkpointRequest: AsyncStream<Void>.Continuation?
    /// Whether this attempt has just been given its link.
    var hasFreshLink = false
    /// The finished partial that nobody else may write before it is published.
    var held: (any Partial)?
    /// Whether it counts among those that run.
    var hasPlace = true
    var settled = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  let id: DownloadID
  let key: PartialKey
  let candidate: Candidate
  let rank: Rank
  /// The bytes on disk when the run began.
  let bytesAtStart: Int64
  let stopSignal = StopSignal<StopReason>()
  /// Bytes on disk; written on the transport's thread for each chunk.
  let received: Atomic<Int64>
  /// Bytes received over the network by this run.
  let fetched = Atomic<Int64>(0)
  /// Set when enough bytes have come for a checkpoint; the ticker takes it up.
  let checkpointIsDue = Atomic<Bool>(false)
  let state: Mutex<State>

  /// Counts how often sources had been replaced when it began.
  let sourceEpoch: Int

  init(_ record: DownloadRecord, at now: Duration, sourceEpoch: Int) {
    self.sourceEpoch = sourceEpoch
    id = record.id
    key = record.partialKey
    candidate = record.candidate
    rank = record.rank
    bytesAtStart = record.checkpoint.ranges.prefixLength
    received = Atomic(record.checkpoint.ranges.prefixLength)
    state = Mutex(
      State(
        record: record, publicState: .transferring, lastCheckpointAt: now,
        lastCheckpointBytes: record.checkpoint.ranges.prefixLength,
        durableBytes: record.checkpoint.ranges.prefixLength))
  }

  var record: DownloadRecord { state.withLock { $0.record } }

  /// Reads something of the record: a copy of all of it costs dozens of reference counts.
  func read<Value>(_ body: (DownloadRecord) -> Value) -> Value {
    state.withLock { body($0.record) }
  }

  /// Changes the record that will be saved next.
  @discardableResult
  func update<Result>(_ change: (inout DownloadRecord) -> Result) -> Result {
    state.withLock { change(&$0.record) }
  }

  /// Forgets all bytes: nothing of them may be claimed any more.
  func forgetBytes() {
    update { record in
      record.checkpoint = Checkpoint()
      record.steps = StepLog()
    }
    believe(0)
  }

  /// Ends writing. Where the storage can, the partial stays held until ``letGo()``.
  func finish(_ partial: any Partial) throws {
    try partial.finish()
    state.withLock { $0.held = partial }
  }

  /// Whether nobody else can have the partial.
  var isHolding: Bool { state.withLock { $0.held != nil } }

  /// Lets others have the partial.
  func letGo() {
    let held = state.withLock { state in
      defer { state.held = nil }
      return state.held
    }
    // Its errors have come to light before.
    try? held?.close()
  }

  /// Whether it counts among those that run.
  var hasPlace: Bool { state.withLock { $0.hasPlace } }

  /// Gives up its place.
  /// - Returns: whether it had one.
  func giveUpPlace() -> Bool {
    state.withLock { state in
      defer { state.hasPlace = false }
      return state.hasPlace
    }
  }

  /// Believes so many bytes on disk and no more.
  func believe(_ count: Int64) {
    state.withLock { state in
      state.durableBytes = count
      state.lastCheckpointBytes = count
    }
    received.store(count, ordering: .relaxed)
  }

  /// Returns once the engine has put the download into its next state.
  func settlement() async {
    await withCheckedContinuation { continuation in
      let now = state.withLock { state in
        if state.settled { return true }
        state.waiters.append(continuation)
        return false
      }
      if now { continuation.resume() }
    }
  }

  func settle() {
    let waiters = state.withLock { state in
      state.settled = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// How far it is, with the speed.
  var progress: TransferProgress { state.withLock { progress(in: $0) } }

  private func progress(in state: State) -> TransferProgress {
    TransferProgress(
      received: received.load(ordering: .relaxed), total: state.record.checkpoint.total,
      bytesPerSecond: state.speed.bytesPerSecond)
  }
}

extension Run {
  /// Everything there is to know about it now.
  var status: DownloadStatus {
    state.withLock { state in
      DownloadStatus(
        record: state.record, state: state.publicState, progress: progress(in: state),
        moreFetched: fetched.load(ordering: .relaxed))
    }
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
      name: record.request.destination.name ?? record.steps.artifact?.name ?? record.checkpoint.name,
      createdAt: record.createdAt, updatedAt: record.updatedAt)
  }
}
