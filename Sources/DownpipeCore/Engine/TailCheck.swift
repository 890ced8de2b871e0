// What a checkpoint claims is believed only as far as the bytes on disk agree with its marks: after the loss of power,
// or a change from outside, a file can have its old length and other bytes.

extension Transfer {
  /// Takes back what the ledger claims and the disk does not have: bytes behind the file's end, and bytes behind the
  /// last block that is as it was written.
  func checkTail(of partial: any Partial) async throws {
    let checkpoint = run.read { $0.checkpoint }
    guard !checkpoint.ranges.isEmpty else { return }
    let size = try partial.size()
    var intact = min(size, checkpoint.ranges.prefixLength)
    if !checkpoint.marks.isEmpty {
      let mark = try checkpoint.marks.last { try $0.range.upperBound <= intact && partial.matches($0) }
      intact = mark?.range.upperBound ?? 0
    }
    guard intact < checkpoint.ranges.prefixLength else { return }
    attempt.announce(
      .refused(
        DownloadError(
          .storage,
          "of the \(checkpoint.ranges.prefixLength) bytes on disk, those behind \(intact) are not as they were written",
          stage: attempt.storage.name)))
    if intact == 0 { run.forgetBytes() } else { run.update { $0.checkpoint.cut(to: intact) } }
    // The ledger lets go of them before anything is written in their place.
    try await attempt.save([.checkpoint, .steps])
    run.believe(intact)
  }

  /// Marks the last block before a partial is closed.
  func markTail(of partial: any Partial) {
    let end = run.read { $0.checkpoint.ranges.prefixLength }
    guard end > 0 else { return }
    let mark = (try? partial.mark(endingAt: end)) ?? nil
    run.update { $0.checkpoint.mark(mark) }
  }
}

extension Checkpoint {
  /// Lets go of the bytes from a position on, and of the marks that vouch for any of them.
  mutating func cut(to size: Int64) {
    ranges.remove(contentsOf: max(0, size)..<Int64.max)
    marks.removeAll { $0.range.upperBound > size }
  }

  /// Adds the newest mark, or none at all when there is no such mark: what older ones do not vouch for would be
  /// cut off otherwise.
  ///
  /// Few are kept, the older the farther apart: the farthest one between 1 and 2 MiB before the end, between 2 and 4,
  /// between 4 and 8, and so on. So of a file of any size there is one not far before the place where a disk has
  /// lost its bytes.
  mutating func mark(_ mark: BlockMark?) {
    guard let mark else {
      marks = []
      return
    }
    marks.removeAll { $0.range.upperBound >= mark.range.upperBound }
    var kept = [mark]
    var last: Int?
    for older in marks.reversed() {
      let distance = max(1, (mark.range.upperBound - older.range.upperBound) >> 20)
      let power = distance.leadingZeroBitCount
      if power == last { kept.removeLast() }
      kept.append(older)
      last = power
    }
    marks = kept.reversed()
  }
}
