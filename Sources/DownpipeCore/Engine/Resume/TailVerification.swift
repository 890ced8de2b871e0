// The bytes of a checkpoint count only as far as the file agrees with the checkpoint's marks: after a power failure or
// a change by another program, a file can have the right length and wrong bytes.

extension Transfer {
  /// Removes bytes from the checkpoint that the partial does not have: bytes after the end of the file, and bytes after
  /// the last block that still matches its mark.
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
          "the \(checkpoint.ranges.prefixLength) bytes on disk were damaged or lost after byte \(intact)",
          stage: run.storageName)))
    if intact == 0 { run.forgetBytes() } else { run.update { $0.checkpoint.cut(to: intact) } }
    // The ledger must not claim these bytes while they are overwritten.
    try await run.save([.checkpoint, .steps])
    book.reset(to: intact)
  }
}

extension Run {
  /// Records a mark of the partial's last block in the checkpoint.
  func markTail(of partial: any Partial) {
    let end = read { $0.checkpoint.ranges.prefixLength }
    guard end > 0 else { return }
    let mark = (try? partial.mark(endingAt: end)) ?? nil
    update { $0.checkpoint.mark(mark) }
  }
}
