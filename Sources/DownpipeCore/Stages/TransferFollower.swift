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
public protocol TransferFollower: Sendable {
  /// Takes the next bytes.
  ///
  /// The function may block: it is called on threads for blocking work, never on the transport's, and never by two
  /// threads at the same time. A transfer that has ended or was cancelled waits until the function returns.
  /// - Throws: Any error. The follower gets no more bytes, and the step reads its input.
  func take(_ bytes: RawSpan) throws
}
