internal import Synchronization

extension Run {
  /// So much of a full disk is given back, in bytes.
  private static let roomForTheLedger: Int64 = 512 << 10

  /// Cuts the end off a partial on a full disk, for the ledger to be able to write down how far the download is: it is
  /// often on the same disk, and what it does not know of is lost.
  ///
  /// - Returns: whether there is more room now.
  func makeRoomForTheLedger() async -> Bool {
    let (end, hasArtifact) = read { ($0.checkpoint.ranges.prefixLength, $0.steps.artifact != nil) }
    // What steps have made of the bytes is not touched.
    guard end > 0, !hasArtifact, let partial = try? await storage.openPartial(key, isNew: false) else { return false }
    let hasRoom =
      (try? partial.size()).map { $0 >= end } == true
      && (try? cutEnd(of: partial, by: Self.roomForTheLedger)) != nil
    if hasRoom { markTail(of: partial) }
    try? partial.close()
    return hasRoom
  }

  /// Gives the last bytes of a partial up.
  func cutEnd(of partial: any Partial, by count: Int64) throws {
    let size = max(0, read { $0.checkpoint.ranges.prefixLength } - count)
    try partial.truncate(to: size)
    update { record in
      record.checkpoint.cut(to: size)
      record.checkpoint.isComplete = false
    }
    received.store(size, ordering: .relaxed)
  }
}
