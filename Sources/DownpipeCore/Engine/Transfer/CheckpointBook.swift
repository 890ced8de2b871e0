internal import Synchronization

/// What writes the bodies of a transfer: one body after the other, or several at once.
protocol CheckpointedWriter: Sendable {
  /// The bytes on disk that a checkpoint may record; `nil` while the bodies have not been shown to continue them.
  var provenBytes: ByteRangeSet? { get }
  /// Grows when bytes were removed, which the ledger must not claim any longer.
  var removals: Int { get }
  /// Bytes that were removed before are no longer in the ledger.
  func ledgerKnows(removals: Int)
  /// Requests a checkpoint each time enough bytes have been written; the stream's buffer of one coalesces requests.
  func requestsCheckpoints(from request: AsyncStream<Void>.Continuation)
  /// Makes the next chunk throw `error`.
  func abort(with error: DownloadError)
}

extension CheckpointedWriter {
  var removals: Int { 0 }
  func ledgerKnows(removals: Int) {}
}

/// Decides when a checkpoint of a transfer is due, and commits it: file data first, then the ledger.
final class CheckpointBook: Sendable {
  private struct State {
    /// The bytes that were flushed successfully. If a flush fails, the record is cut to them.
    var durable: ByteRangeSet
    /// Stays set after a failed flush: a later successful flush does not prove the bytes before it.
    var flushHasFailed = false
    /// The number of bytes in the last checkpoint.
    var committedBytes: Int64
    var hasCommitted = false
    /// Whether the ledger has the last checkpoint.
    var isSaved = true
  }

  private let run: Run
  private let state: Mutex<State>

  init(_ run: Run) {
    self.run = run
    let ranges = run.read { $0.partialRanges }
    state = Mutex(State(durable: ranges, committedBytes: ranges.byteCount))
  }

  var policy: CheckpointPolicy { run.context.options.checkpoints }

  /// Whether a checkpoint of this transfer has been committed.
  var hasCommitted: Bool { state.withLock { $0.hasCommitted } }

  /// Whether a flush has failed, so that the disk may have lost bytes.
  var hasLostBytes: Bool { state.withLock { $0.flushHasFailed } }

  /// Starts again with the first `count` bytes on disk.
  func reset(to count: Int64) { reset(to: count > 0 ? ByteRangeSet(0..<count) : ByteRangeSet()) }

  /// Starts again with the given bytes on disk.
  func reset(to ranges: ByteRangeSet) {
    state.withLock { state in
      state.durable = ranges
      state.committedBytes = ranges.byteCount
    }
  }

  // MARK: While a body arrives

  /// The largest body without checkpoints: downloading so few bytes again costs less than a commit.
  private static let bytesWithoutCheckpoint: Int64 = 256 << 10

  /// Whether a body is too small for checkpoints.
  func isTooSmall(_ writer: BodyWriter) -> Bool {
    guard let end = writer.bounds.end else { return false }
    return end - writer.bounds.start <= min(Self.bytesWithoutCheckpoint, policy.bytes)
  }

  /// Receives a body and commits checkpoints meanwhile, after a number of bytes or a time.
  ///
  /// Checkpoints are committed by a child task that has ended when this method returns, so that no checkpoint is
  /// committed after a later change of the record.
  @inline(never)  // The frame has room for two child tasks, which small bodies need not have.
  func committing(
    _ writer: some CheckpointedWriter, of partial: any Partial, adopting adoption: Adoption?,
    receive: () async throws -> Void
  ) async throws {
    let (requests, request) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    writer.requestsCheckpoints(from: request)
    let time = run.context.time
    let interval = policy.interval
    // Cancelled and awaited at the end of the scope.
    async let _: Void = {
      while (try? await time.sleep(for: interval, purpose: .checkpoint)) != nil { request.yield() }
    }()
    async let commits: Void = commit(requests, of: writer, partial, adopting: adoption)
    do {
      try await receive()
    } catch {
      request.finish()
      throw error
    }
    request.finish()
    try await commits
  }

  private func commit(
    _ requests: AsyncStream<Void>, of writer: some CheckpointedWriter, _ partial: any Partial,
    adopting adoption: Adoption?
  ) async throws {
    var known = 0
    for await _ in requests {
      let removals = writer.removals
      guard let bytes = writer.provenBytes,
        removals > known || bytes.byteCount > state.withLock({ $0.committedBytes })
      else { continue }
      // A task of its own: what it needs is released when it ends, and a task keeps its memory until its own end. A slow
      // transfer waits for the next checkpoint most of the time.
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { [self] in try await commit(bytes, of: writer, in: partial, adopting: adoption) }
        try await group.waitForAll()
      }
      if removals > known, state.withLock({ $0.isSaved }) {
        known = removals
        writer.ledgerKnows(removals: removals)
      }
    }
  }

  private func commit(
    _ bytes: ByteRangeSet, of writer: some CheckpointedWriter, in partial: any Partial, adopting adoption: Adoption?
  ) async throws {
    do {
      try await flush(partial, holding: bytes)
    } catch {
      // The disk may have lost bytes: write no more to it.
      writer.abort(with: DownloadError(error, as: .storage))
      throw error
    }
    try await commit(bytes, in: partial, adopting: adoption)
  }

  /// Commits a checkpoint between two bodies, if the server sends the file in bodies too small for checkpoints.
  func commitBetweenBodies(_ partial: any Partial) async throws {
    let bytes = run.read { $0.partialRanges }
    guard bytes.byteCount - state.withLock({ $0.committedBytes }) >= policy.bytesBetween else { return }
    try await flush(partial, holding: bytes)
    try await commit(bytes, in: partial)
  }

  /// Checks that the partial has all bytes that were written to it.
  ///
  /// - Throws: ``DownloadError`` with `.storage` if another program has cut it. What is left may have zeros in front, so
  ///   no byte is kept.
  private func checkLength(of partial: any Partial, holding bytes: ByteRangeSet) throws {
    let size = try partial.size()
    guard size < bytes.end else { return }
    state.withLock { state in
      state.durable = ByteRangeSet()
      state.flushHasFailed = true
    }
    throw DownloadError.shortened(to: size, of: bytes.end)
  }

  /// Commits a checkpoint of bytes that have been flushed.
  private func commit(_ bytes: ByteRangeSet, in partial: any Partial, adopting adoption: Adoption? = nil) async throws {
    state.withLock { state in
      state.durable = bytes
      state.committedBytes = bytes.byteCount
      state.hasCommitted = true
    }
    run.update { record in
      record.checkpoint.ranges = bytes
      record.checkpoint.removeStrayMarks()
      adoption?.apply(to: &record)
    }
    markTail(of: partial)
    do {
      try await run.save([.checkpoint])
      state.withLock { $0.isSaved = true }
    } catch let error as DownloadError where error.code == .ledger {
      state.withLock { $0.isSaved = false }
      // The transfer goes on without this checkpoint; the next one may succeed.
      run.announce(.attemptFailed(error))
    }
  }

  // MARK: Flushing and closing

  /// Flushes the written bytes, and remembers a failure. A partial without a name has not been flushed yet, so a
  /// failure is not remembered and a later flush may succeed.
  func flush(_ partial: any Partial) async throws {
    do {
      try await partial.synchronize()
    } catch let error where !(error is CancellationError) {
      if partial.isNamed { state.withLock { $0.flushHasFailed = true } }
      throw error
    }
  }

  /// Flushes the written bytes, and checks that the partial has those that a checkpoint will claim.
  private func flush(_ partial: any Partial, holding bytes: ByteRangeSet) async throws {
    try await run.located(run.storageName) {
      try await flush(partial)
      try checkLength(of: partial, holding: bytes)
    }
  }

  /// The number of bytes to free on a full disk for the partial's name.
  private static let roomForTheName: Int64 = 64 << 10

  /// Flushes the bytes of an interrupted transfer. On a full disk the partial is truncated to make room for its name:
  /// without a name all bytes would be lost.
  private func flushMakingRoom(_ partial: any Partial) async throws {
    do {
      try await flush(partial)
    } catch let error as DownloadError where error.code == .noSpace && !partial.isNamed {
      try run.cutEnd(of: partial, by: Self.roomForTheName)
      try await flush(partial)
    }
  }

  func markTail(of partial: any Partial) { run.markTail(of: partial) }

  /// Closes the partial of an interrupted transfer, and removes bytes from the record that may not be on disk.
  func keepBytes(of partial: any Partial) async {
    let hasBytes = run.read { !$0.checkpoint.ranges.isEmpty }
    if hasBytes, !state.withLock({ $0.flushHasFailed }) {
      do {
        try await flushMakingRoom(partial)
        try checkLength(of: partial, holding: run.read { $0.checkpoint.ranges })
      } catch { state.withLock { $0.flushHasFailed = true } }
      markTail(of: partial)
    }
    do { try partial.close() } catch { state.withLock { $0.flushHasFailed = true } }
    cutUnflushed()
  }

  /// Closes a partial that could not be finished, and removes the bytes that were not flushed from the record.
  func closeLosing(_ partial: any Partial) {
    try? partial.close()
    state.withLock { $0.flushHasFailed = true }
    cutUnflushed()
  }

  private func cutUnflushed() {
    let durable = state.withLock { $0.flushHasFailed ? $0.durable : nil }
    guard let durable else { return }
    run.update { record in
      record.checkpoint.keep(only: durable)
      record.checkpoint.isComplete = false
    }
  }
}
