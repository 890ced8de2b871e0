internal import Synchronization

extension Run {
  /// The number of bytes to free on a full disk.
  private static let roomForTheLedger: Int64 = 512 << 10

  /// Truncates a partial on a full disk, so that a checkpoint can be committed: the ledger is often on the same disk,
  /// and bytes without a checkpoint are lost.
  ///
  /// - Returns: Whether space was freed.
  func makeRoomForTheLedger() async -> Bool {
    let (end, hasArtifact) = read { ($0.checkpoint.ranges.end, $0.steps.artifact != nil) }
    // The artifacts of steps are not truncated.
    guard end > 0, !hasArtifact, let partial = try? await storage.openPartial(key, isNew: false) else { return false }
    let hasRoom =
      (try? partial.size()).map { $0 >= end } == true
      && (try? cutEnd(of: partial, by: Self.roomForTheLedger)) != nil
    if hasRoom { markTail(of: partial) }
    try? partial.close()
    return hasRoom
  }

  /// Truncates a partial so that its last `count` bytes are freed.
  func cutEnd(of partial: any Partial, by count: Int64) throws {
    let size = read { $0.checkpoint.ranges.start(ofLast: count) }
    try partial.truncate(to: size)
    update { record in
      record.checkpoint.cut(to: size)
      record.checkpoint.isComplete = false
    }
  }
}
