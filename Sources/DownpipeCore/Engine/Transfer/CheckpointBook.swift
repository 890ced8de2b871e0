internal import Synchronization

/// The checkpoints of one transfer: when one is due, and how it is committed. File data first, then the ledger.
final class CheckpointBook: Sendable {
  private struct State {
    /// The bytes that were flushed for certain, and what a failure to flush takes the record back to.
    var durableBytes: Int64
    /// Set when a flush has failed: a later one that succeeds says nothing about the bytes before it.
    var flushHasFailed = false
    /// The bytes of the last checkpoint.
    var committedBytes: Int64
    /// Whether the ledger knows of bytes of this transfer.
    var hasCommitted = false
  }

  private let run: Run
  private let state: Mutex<State>

  init(_ run: Run) {
    self.run = run
    let bytes = run.bytesAtStart
    state = Mutex(State(durableBytes: bytes, committedBytes: bytes))
  }

  private var policy: CheckpointPolicy { run.context.options.checkpoints }

  /// Whether the ledger knows of bytes that this transfer has written.
  var hasCommitted: Bool { state.withLock { $0.hasCommitted } }

  /// So many bytes are on disk and no more.
  func reset(to count: Int64) {
    state.withLock { state in
      state.durableBytes = count
      state.committedBytes = count
    }
    run.received.store(count, ordering: .relaxed)
  }

  // MARK: While a body arrives

  /// A body of so few bytes is not worth a checkpoint on its way: they are fetched again faster than that.
  private static let bytesWithoutCheckpoint: Int64 = 256 << 10

  /// Whether a body ends before a checkpoint could be of use.
  func isTooSmall(_ writer: BodyWriter) -> Bool {
    guard let end = writer.end else { return false }
    return end - writer.start <= min(Self.bytesWithoutCheckpoint, policy.bytes)
  }

  /// The bytes between two checkpoints.
  var bytesBetween: Int64 { min(max(1, policy.bytes), 1 << 60) }

  /// Receives a body, and commits checkpoints after so many bytes and so much time, in a child task that has ended when
  /// this returns: no checkpoint can overtake what follows.
  func committing(
    _ writer: BodyWriter, of partial: any Partial, adopting adoption: Adoption,
    receive: () async throws -> Void
  ) async throws {
    let (requests, request) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    writer.requestsCheckpoints(from: request)
    let time = run.context.time
    let interval = policy.interval
    // Cancelled, and waited for, when the scope is left.
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
    _ requests: AsyncStream<Void>, of writer: BodyWriter, _ partial: any Partial, adopting adoption: Adoption
  ) async throws {
    for await _ in requests {
      let offset = writer.offset
      guard offset > writer.compareUntil, offset > state.withLock({ $0.committedBytes }) else { continue }
      do {
        try await run.located(run.storage.name) { try await flush(partial) }
      } catch {
        // No byte more for a disk that loses them.
        writer.abort(with: DownloadError(error, as: .storage))
        throw error
      }
      try await commit(offset, in: partial, adopting: writer.start < writer.compareUntil ? adoption : nil)
    }
  }

  /// Commits a checkpoint where a server serves a file in bodies too small for one on their way.
  func commitBetweenBodies(_ partial: any Partial) async throws {
    let end = run.read { $0.checkpoint.ranges.prefixLength }
    guard end - state.withLock({ $0.committedBytes }) >= policy.bytes else { return }
    try await run.located(run.storage.name) { try await flush(partial) }
    try await commit(end, in: partial)
  }

  /// Tells the ledger that the bytes before `offset` are on the disk, once they have been flushed.
  private func commit(_ offset: Int64, in partial: any Partial, adopting adoption: Adoption? = nil) async throws {
    state.withLock { state in
      state.durableBytes = offset
      state.committedBytes = offset
      state.hasCommitted = true
    }
    run.update { record in
      record.checkpoint.ranges.insert(contentsOf: 0..<offset)
      adoption?.apply(to: &record.checkpoint)
    }
    markTail(of: partial)
    do {
      try await run.save([.checkpoint])
    } catch let error as DownloadError where error.code == .ledger {
      // A checkpoint missed is not a transfer lost; the next one may succeed.
      run.announce(.attemptFailed(error))
    }
  }

  // MARK: Flushing and closing

  /// Makes durable what was written, and remembers when that fails. As long as there is no name nothing was flushed, and
  /// another try may succeed.
  func flush(_ partial: any Partial) async throws {
    do {
      try await partial.synchronize()
    } catch let error where !(error is CancellationError) {
      if partial.isNamed { state.withLock { $0.flushHasFailed = true } }
      throw error
    }
  }

  /// So much of a full disk is given back for a name, in bytes.
  private static let roomForTheName: Int64 = 64 << 10

  /// Makes durable what a broken transfer has written. On a full disk the last bytes make room for the name: without one
  /// all of them would be gone.
  private func flushMakingRoom(_ partial: any Partial) async throws {
    do {
      try await flush(partial)
    } catch let error as DownloadError where error.code == .noSpace && !partial.isNamed {
      try run.cutEnd(of: partial, by: Self.roomForTheName)
      try await flush(partial)
    }
  }

  /// Marks the last block before a partial is closed.
  func markTail(of partial: any Partial) { run.markTail(of: partial) }

  /// Closes a broken transfer's partial, and lets go of the bytes that may not be on the disk.
  func keepBytes(of partial: any Partial) async {
    let hasBytes = run.read { !$0.checkpoint.ranges.isEmpty }
    if hasBytes, !state.withLock({ $0.flushHasFailed }) {
      do { try await flushMakingRoom(partial) } catch { state.withLock { $0.flushHasFailed = true } }
      markTail(of: partial)
    }
    do { try partial.close() } catch { state.withLock { $0.flushHasFailed = true } }
    cutUnflushed()
  }

  /// Closes a partial whose writing could not be ended in good order.
  func closeLosing(_ partial: any Partial) {
    try? partial.close()
    state.withLock { $0.flushHasFailed = true }
    cutUnflushed()
  }

  private func cutUnflushed() {
    let durable = state.withLock { $0.flushHasFailed ? $0.durableBytes : nil }
    guard let durable else { return }
    run.update { record in
      record.checkpoint.cut(to: durable)
      record.checkpoint.isComplete = false
    }
  }
}
