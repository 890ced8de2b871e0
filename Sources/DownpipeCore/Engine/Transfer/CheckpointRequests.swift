internal import Synchronization

/// What the writer of bodies and the ``CheckpointBook`` tell each other: the writer requests a checkpoint each time enough
/// bytes have been written, and the book ends the writing when the disk may have lost bytes.
struct CheckpointRequests: ~Copyable, Sendable {
  private struct State {
    var failure: DownloadError?
    var request: AsyncStream<Void>.Continuation?
  }

  private let bytesBetween: Int64
  private let pause: Duration
  private let time: any TimeSource
  /// The number of bytes at which the next checkpoint is due; it is not due before there is a stream.
  private let next = Atomic<Int64>(.max)
  /// Before this instant, in nanoseconds of the clock, no checkpoint is due for the sake of its bytes. The first one is due
  /// at once: it gives the partial its name, which keeps other processes away.
  private let earliest = Atomic<Int64>(.min)
  private let isAborted = Atomic(false)
  private let state = Mutex(State())

  init(_ policy: CheckpointPolicy, time: any TimeSource) {
    bytesBetween = policy.bytesBetween
    pause = policy.pause
    self.time = time
  }

  /// Requests checkpoints through a stream, whose buffer of one coalesces them.
  /// - Parameter count: The number of bytes on disk.
  func begin(_ request: AsyncStream<Void>.Continuation, at count: Int64) {
    state.withLock { $0.request = request }
    next.store(count + bytesBetween, ordering: .relaxed)
  }

  /// Requests a checkpoint if one is due; called after each chunk. The clock is read only when there are enough bytes. A
  /// stream that stops before the end of the pause gets its checkpoint from the policy's interval.
  func written(_ count: Int64) {
    guard count >= next.load(ordering: .relaxed) else { return }
    if pause > .zero {
      let now = time.now
      guard now.nanoseconds >= earliest.load(ordering: .relaxed) else { return }
      earliest.store((now + pause).nanoseconds, ordering: .relaxed)
    }
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

extension CheckpointPolicy {
  /// The number of bytes between two checkpoints, in a range that can be added to a position.
  var bytesBetween: Int64 { min(max(1, bytes), 1 << 60) }

  /// The shortest time between two checkpoints that are due because of their bytes. A fast stream would commit dozens in
  /// a second, each of which costs more than to fetch its bytes again. A policy of fewer bytes than the default is
  /// followed to the byte.
  package var pause: Duration { bytes >= CheckpointPolicy().bytes ? .milliseconds(100) : .zero }
}

extension Duration {
  /// The whole nanoseconds, for atomics.
  fileprivate var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
  }
}
