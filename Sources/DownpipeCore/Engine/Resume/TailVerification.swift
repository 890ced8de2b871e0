// What a checkpoint claims counts only as far as the bytes on disk agree with its marks: after the loss of power, or a
// change from outside, a file can have its old length and other bytes.

extension Transfer {
  /// Takes back what the ledger claims and the disk does not have: bytes behind the file's end, and bytes behind the
  /// last block that is as it was written.
  func verifyTail(of partial: any Partial) async throws {
    let checkpoint = run.read { $0.checkpoint }
    guard !checkpoint.ranges.isEmpty else { return }
    let size = try partial.size()
    var intact = min(size, checkpoint.ranges.prefixLength)
    if !checkpoint.marks.isEmpty {
      let mark = try checkpoint.marks.last { try $0.range.upperBound <= intact && partial.matches($0) }
      intact = mark?.range.upperBound ?? 0
    }
    guard intact < checkpoint.ranges.prefixLength else { return }
    run.announce(
      .refused(
        DownloadError(
          .storage,
          "of the \(checkpoint.ranges.prefixLength) bytes on disk, those behind \(intact) are not as they were written",
          stage: run.storage.name)))
    if intact == 0 { run.forgetBytes() } else { run.update { $0.checkpoint.cut(to: intact) } }
    // The ledger lets go of them before anything is written in their place.
    try await run.save([.checkpoint, .steps])
    book.reset(to: intact)
  }
}

extension Run {
  /// Marks the last block before a partial is closed.
  func markTail(of partial: any Partial) {
    let end = read { $0.checkpoint.ranges.prefixLength }
    guard end > 0 else { return }
    let mark = (try? partial.mark(endingAt: end)) ?? nil
    update { $0.checkpoint.mark(mark) }
  }
}
