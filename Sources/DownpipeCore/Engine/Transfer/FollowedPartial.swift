internal import Synchronization

/// The partial of a transfer whose bytes are read while others are written.
///
/// All changes of a transfer pass through it. So it determines by itself which bytes can be read, and whether bytes that
/// have been read were changed afterwards: the reader claims bytes before it reads them, and each change that ends after
/// the claim and touches claimed bytes is noticed.
///
/// It knows only the changes of this transfer: as without followers, another program must not write to a partial.
///
/// It passes on every call, and must implement every requirement of ``Partial``, also those with a default.
final class FollowedPartial: Partial {
  private struct State {
    var front = StoredFront()
    /// Bytes before this position may have been read.
    var claimed: Int64 = 0
    /// Whether claimed bytes have been changed.
    var hasChanged = false
    /// The front at which ``wake`` is notified.
    var wakeAt: Int64 = .max
    var wake: AsyncStream<Void>.Continuation?
  }

  let base: any Partial
  /// Without a reader nothing is recorded. Only changed between bodies.
  private let isFollowed = Atomic(false)
  private let state = Mutex(State())

  init(_ base: any Partial) { self.base = base }

  // MARK: For the reader

  /// Begins to record the changes. No other thread may write meanwhile.
  ///
  /// - Parameter ranges: The bytes on disk.
  func begin(with ranges: ByteRangeSet) {
    state.withLock { $0 = State(front: StoredFront(ranges)) }
    isFollowed.store(true, ordering: .releasing)
  }

  /// Whether no claimed byte has been changed since ``begin(with:)``.
  var isUnchanged: Bool { isFollowed.load(ordering: .acquiring) && state.withLock { !$0.hasChanged } }

  /// Claims the next bytes, so that they can be read.
  ///
  /// - Returns: Their number; 0 if they are not on disk yet, `nil` if claimed bytes have been changed.
  func claim(from position: Int64, atMost count: Int) -> Int? {
    state.withLock { state in
      guard !state.hasChanged else { return nil }
      let end = min(position + Int64(count), state.front.position)
      guard end > position else { return 0 }
      state.claimed = max(state.claimed, end)
      return Int(end - position)
    }
  }

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
  private func record(from offset: Int64, _ change: (inout StoredFront) -> Void = { _ in }) {
    guard isFollowed.load(ordering: .acquiring) else { return }
    let wake = state.withLock { state -> AsyncStream<Void>.Continuation? in
      if offset < state.claimed { state.hasChanged = true }
      change(&state.front)
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
    let end = offset + Int64(bytes.byteCount)
    record(from: offset) { $0.insert(offset..<end) }
  }

  func truncate(to size: Int64) throws {
    defer { record(from: size) { $0.cut(to: size) } }
    try base.truncate(to: size)
  }

  func adopt(_ path: String) throws -> Bool {
    defer { record(from: 0) { $0 = StoredFront() } }
    return try base.adopt(path)
  }

  func copy(_ path: String, count: Int64) async throws -> Int64? {
    defer { record(from: 0) { $0 = StoredFront() } }
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
