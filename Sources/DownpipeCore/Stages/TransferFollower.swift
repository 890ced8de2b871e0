/// Takes the bytes of a download while they arrive, for a step that would otherwise read the whole file again.
///
/// A step returns one in ``PostProcessor/follower(in:)``. It gets the bytes of the download in order, from byte 0 on,
/// also if they arrive in another order or were on disk before. The step finds it in ``ProcessingContext/follower`` if
/// it has taken exactly the bytes of the step's input.
///
/// ```swift
/// final class Counting: TransferFollower {
///   private let zeros = Atomic(0)
///   var count: Int { zeros.load(ordering: .relaxed) }
///   func take(_ bytes: RawSpan) {
///     let found = bytes.withUnsafeBytes { $0.count { $0 == 0 } }
///     zeros.wrappingAdd(found, ordering: .relaxed)
///   }
/// }
/// ```
///
/// **What a follower writes.** The follower of a step with ``PostProcessor/followerWrites`` may write to the workspace of
/// its context. What it has written is worth nothing until its step has finished it: checked the end of the data, and
/// given it its name. The downloader calls ``discard()`` once the follower is not needed any more: when the transfer
/// starts again, is stopped or fails, when bytes that were taken are changed, when ``take(_:)`` has thrown, and when the
/// step has returned or failed. The next follower of the step, or the step itself, finds what a process has left that
/// was killed meanwhile, and must replace it.
public protocol TransferFollower: Sendable {
  /// Takes the next bytes.
  ///
  /// The function may block: it is called on threads for blocking work, never on the transport's, and never by two
  /// threads at the same time. A transfer that has ended or was cancelled waits until the function returns.
  /// - Throws: Any error. The follower gets no more bytes, and the step reads its input, and reports what is wrong with
  ///   it.
  func take(_ bytes: RawSpan) throws

  /// Removes what the follower has written, unless its step has finished it, and releases what it holds.
  ///
  /// Nothing may be left when the function returns. It may block, is never called during ``take(_:)``, and may be called
  /// more than once. No bytes are taken afterwards. The default implementation does nothing.
  func discard()
}

extension TransferFollower {
  /// The default: does nothing, for followers that keep their result in memory.
  public func discard() {}
}
