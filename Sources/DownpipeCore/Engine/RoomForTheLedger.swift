extension Transfer {
  /// So much of a full disk is given back, in bytes.
  private static let roomForTheLedger: Int64 = 512 << 10

  /// Cuts the end off a partial on a full disk, for the ledger to be able to write down how far the download is: it is
  /// often on the same disk, and what it does not know of is lost.
  ///
  /// - Returns: whether there is more room now.
  func makeRoomForTheLedger() async -> Bool {
    let end = run.record.checkpoint.ranges.prefixLength
    guard end > 0, let partial = try? await attempt.storage.openPartial(run.key) else { return false }
    let size = max(0, end - Self.roomForTheLedger)
    let hasRoom = (try? partial.truncate(to: size)) != nil
    if hasRoom {
      run.update { $0.checkpoint.cut(to: size) }
      run.believe(size)
      markTail(of: partial)
    }
    try? partial.close()
    return hasRoom
  }
}
