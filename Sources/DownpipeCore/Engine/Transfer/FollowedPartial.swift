internal import Synchronization

/// The partial of a transfer whose bytes are read while others are written.
///
/// All changes of a transfer pass through it. So it determines by itself which bytes can be read, and whether bytes that
/// have been read were changed afterwards: the reader claims bytes before it reads them, and each change that ends after
/// the claim and touches claimed bytes is noticed.
///
/// Bytes that arrive in order are kept in memory for the reader, as far as there is room: they are copied once, and the
/// partial need not be read.
///
/// It knows only the changes of this transfer: as without followers, another program must not write to a partial.
///
/// It passes on every call, and must implement every requirement of ``Partial``, also those with a default.
final class FollowedPartial: Partial {
  private struct State: ~Copyable {
    var front = StoredFront()
    /// Bytes before this position may have been read.
    var claimed: Int64 = 0
    /// Bytes from ``claimed`` on that are in memory.
    var arrived: ArrivedBytes
    /// Whether bytes are kept in memory: there is a reader.
    var isRead = false
    /// Whether claimed bytes have been changed.
    var hasChanged = false
    /// The front at which ``wake`` is notified.
    var wakeAt: Int64 = .max
    var wake: AsyncStream<Void>.Continuation?

    /// Keeps bytes that were written in memory, if they are the next ones for the reader.
    mutating func keep(_ bytes: RawSpan, at offset: Int64) {
      guard isRead, !hasChanged, offset == (arrived.isEmpty ? claimed : arrived.end) else { return }
      arrived.append(bytes, at: offset)
    }
  }

  let base: any Partial
  /// Without a reader nothing is recorded. Only changed between bodies.
  private let isFollowed = Atomic(false)
  private let state: Mutex<State>
  private let pool: BlockPool

  init(_ base: any Partial, pool: BlockPool) {
    self.base = base
    self.pool = pool
    state = Mutex(State(arrived: ArrivedBytes(pool: pool)))
  }

  // MARK: For the reader

  /// Begins to record the changes. No other thread may write meanwhile.
  ///
  /// - Parameter ranges: The bytes on disk.
  func begin(with ranges: ByteRangeSet) {
    state.withLock { state in
      state = State(front: StoredFront(ranges), arrived: ArrivedBytes(pool: pool), isRead: true)
    }
    isFollowed.store(true, ordering: .releasing)
  }

  /// Ends the keeping of bytes for a reader. Changes are still noticed.
  func endReading() {
    guard isFollowed.load(ordering: .acquiring) else { return }
    state.withLock { state in
      state.isRead = false
      state.arrived.removeAll()
    }
  }

  /// Whether no claimed byte has been changed since ``begin(with:)``.
  var isUnchanged: Bool { isFollowed.load(ordering: .acquiring) && state.withLock { !$0.hasChanged } }

  /// The next bytes for the reader.
  enum Claim: Equatable {
    /// Bytes in memory. The reader gives the block back with ``FollowedPartial/giveBack(_:)``.
    case arrived([UInt8])
    /// A number of bytes on disk, which the reader reads.
    case stored(Int)
    /// There are none yet.
    case nothing
    /// Claimed bytes have been changed.
    case changed
  }

  /// Claims the next bytes, so that they can be read.
  ///
  /// - Parameters:
  ///   - position: The position after the last claimed byte.
  ///   - count: The most bytes to read from the disk.
  func claim(from position: Int64, atMost count: Int) -> Claim {
    state.withLock { state in
      guard !state.hasChanged else { return .changed }
      if let block = state.arrived.removeFirst() {
        state.claimed += Int64(block.count)
        return .arrived(block)
      }
      let end = min(position + Int64(count), state.front.position)
      guard end > position else { return .nothing }
      state.claimed = max(state.claimed, end)
      return .stored(Int(end - position))
    }
  }

  func giveBack(_ block: consuming [UInt8]) { pool.giveBack(block) }

  /// Notifies `wake` once, when all bytes before `position` are on disk, or claimed bytes have been changed.
  func notify(_ wake: AsyncStream<Void>.Continuation, at position: Int64) {
    let isThere = state.withLock { state in
      if state.hasChanged || state.front.position >= position { return true }
      state.wakeAt = position
      state.wake = wake
      return false
    }
    if isThere { wake.yield() }
  }

  // MARK: Changes

  /// Records a change of the bytes from `offset` on, after it was made or has failed: a later claim then reads the
  /// changed bytes. A change that failed may have been made in part.
  private func record(from offset: Int64, _ change: (inout State) -> Void = { _ in }) {
    guard isFollowed.load(ordering: .acquiring) else { return }
    let wake = state.withLock { state -> AsyncStream<Void>.Continuation? in
      if offset < state.claimed { state.hasChanged = true }
      if !state.arrived.isEmpty, offset < state.arrived.end { state.arrived.removeAll() }
      change(&state)
      guard state.hasChanged || state.front.position >= state.wakeAt else { return nil }
      state.wakeAt = .max
      defer { state.wake = nil }
      return state.wake
    }
    wake?.yield()
  }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    do { try base.write(bytes, at: offset) } catch {
      record(from: offset)
      throw error
    }
    record(from: offset) { state in
      state.keep(bytes, at: offset)
      state.front.insert(offset..<offset + Int64(bytes.byteCount))
    }
  }

  func truncate(to size: Int64) throws {
    defer { record(from: size) { $0.front.cut(to: size) } }
    try base.truncate(to: size)
  }

  func adopt(_ path: String) throws -> Bool {
    defer { record(from: 0) { $0.front = StoredFront() } }
    return try base.adopt(path)
  }

  func copy(_ path: String, count: Int64) async throws -> Int64? {
    defer { record(from: 0) { $0.front = StoredFront() } }
    return try await base.copy(path, count: count)
  }

  // MARK: Other calls

  func size() throws -> Int64 { try base.size() }
  func read(at offset: Int64, count: Int) throws -> [UInt8] { try base.read(at: offset, count: count) }
  func read(at offset: Int64, into buffer: inout MutableRawSpan) throws -> Int {
    try base.read(at: offset, into: &buffer)
  }
  func synchronize() async throws { try await base.synchronize() }
  func persist() throws { try base.persist() }
  var isNamed: Bool { base.isNamed }
  func finish() throws { try base.finish() }
  func close() throws { try base.close() }
  func artifact(name: String, mediaType: String?) throws -> Artifact {
    try base.artifact(name: name, mediaType: mediaType)
  }
  func export(to path: String, count: Int64) async throws { try await base.export(to: path, count: count) }
  func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? {
    try base.mark(endingAt: offset, from: start)
  }
  func matches(_ mark: BlockMark) throws -> Bool { try base.matches(mark) }
}
