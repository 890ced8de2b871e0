internal import Synchronization

/// What the writer of bodies and the ``CheckpointBook`` tell each other: the writer requests a checkpoint each time enough
/// bytes have been written, and the book ends the writing when the disk may have lost bytes.
struct CheckpointRequests: ~Copyable, Sendable {
  private struct State {
    var failure: DownloadError?
    var request: AsyncStream<Void>.Continuation?
  }

  private let bytesBetween: Int64
  /// The number of bytes at which the next checkpoint is due; it is not due before there is a stream.
  private let next = Atomic<Int64>(.max)
  private let isAborted = Atomic(false)
  private let state = Mutex(State())

  init(bytesBetween: Int64) { self.bytesBetween = bytesBetween }

  /// Requests checkpoints through a stream, whose buffer of one coalesces them.
  /// - Parameter count: The number of bytes on disk.
  func begin(_ request: AsyncStream<Void>.Continuation, at count: Int64) {
    state.withLock { $0.request = request }
    next.store(count + bytesBetween, ordering: .relaxed)
  }

  /// Counts from another number of bytes on disk.
  func restart(at count: Int64) {
    if next.load(ordering: .relaxed) != .max { next.store(count + bytesBetween, ordering: .relaxed) }
  }

  /// Requests a checkpoint if one is due; called after each chunk.
  func written(_ count: Int64) {
    guard count >= next.load(ordering: .relaxed) else { return }
    next.store(count + bytesBetween, ordering: .relaxed)
    requestNow()
  }

  func requestNow() { state.withLock { $0.request }?.yield() }

  /// Makes ``check()`` throw; the first error counts.
  func abort(with error: DownloadError) {
    state.withLock { $0.failure = $0.failure ?? error }
    isAborted.store(true, ordering: .releasing)
  }

  /// Throws the error with which the book has ended the writing.
  func check() throws(DownloadError) {
    if isAborted.load(ordering: .acquiring), let error = state.withLock({ $0.failure }) { throw error }
  }
}
