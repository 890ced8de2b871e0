/// What is done about a body whose end the source cannot confirm: it ended with its connection over TLS, without the closure
/// alert that excludes a cut (RFC 9112 §9.8, RFC 8446 §6.1).
enum UnconfirmedEnd: Hashable, Sendable {
  /// The size or a digest of the file proves the end, or refutes it.
  case proved
  /// The file is fetched once more, and compared with the bytes on disk.
  case compare
  /// The file is published, with a notice.
  case publish

  /// The largest file that is fetched twice.
  static let largestCompared: Int64 = 64 << 20

  /// - Parameters:
  ///   - size: The size that the bytes must have: the announced one, the one of an earlier reply, or the expected one of the
  ///     request; `nil` if none is known.
  ///   - hasDigest: Whether a step verifies a digest of the whole file.
  ///   - offset: Where the body has ended.
  static func decide(size: Int64?, hasDigest: Bool, endedAt offset: Int64) -> UnconfirmedEnd {
    if size != nil || hasDigest { return .proved }
    return offset <= largestCompared ? .compare : .publish
  }
}
