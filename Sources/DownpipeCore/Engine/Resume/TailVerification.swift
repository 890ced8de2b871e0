// The bytes of a checkpoint count only as far as the file agrees with the checkpoint's marks: after a power failure or
// a change by another program, a file can have the right length and wrong bytes.

extension Transfer {
  /// Removes bytes from the checkpoint that the partial does not have: bytes after the end of the file, and bytes of
  /// each range after the last block that still matches its mark.
  func verifyTail(of partial: any Partial) async throws {
    let checkpoint = run.read { $0.checkpoint }
    guard !checkpoint.ranges.isEmpty else { return }
    let size = try partial.size()
    var intact = ByteRangeSet()
    for range in checkpoint.ranges.ranges {
      let end = try Self.end(of: range, of: partial, size: size, checkpoint.marks)
      if end > range.lowerBound { intact.insert(contentsOf: range.lowerBound..<end) }
    }
    let lost = checkpoint.ranges.subtracting(intact)
    guard let first = lost.ranges.first else { return }
    run.announce(
      .refused(
        DownloadError(
          .storage,
          "\(lost.byteCount) of the \(checkpoint.ranges.byteCount) bytes on disk were damaged or lost, from byte "
            + "\(first.lowerBound) on", stage: run.storageName)))
    if intact.isEmpty { run.forgetBytes() } else { run.update { $0.checkpoint.keep(only: intact) } }
    // The ledger must not claim these bytes while they are overwritten.
    try await run.save([.checkpoint, .steps])
    book.reset(to: intact)
  }

  /// The end of the bytes of a range that are still as they were written.
  private static func end(
    of range: ByteRange, of partial: any Partial, size: Int64, _ marks: [BlockMark]
  ) throws -> Int64 {
    let end = min(size, range.upperBound)
    guard !marks.isEmpty else { return end }
    let mark = try marks.last { mark in
      guard mark.range.lowerBound >= range.lowerBound, mark.range.upperBound <= end else { return false }
      return try partial.matches(mark)
    }
    return mark?.range.upperBound ?? range.lowerBound
  }
}

extension Run {
  /// The most ranges after the first one whose ends are marked. Transfers have fewer connections.
  private static let markedRanges = 1024

  /// Records a mark of the last block of each range in the checkpoint.
  func markTail(of partial: any Partial) {
    let ranges = read { $0.checkpoint.ranges.ranges }
    guard let first = ranges.first else { return }
    // A range without a mark would count as lost. There are so many only while wrong pieces are fetched again, whose digests
    // prove the file.
    guard ranges.count <= Self.markedRanges else { return update { $0.checkpoint.marks = [] } }
    if first.lowerBound == 0 {
      let mark = (try? partial.mark(endingAt: first.upperBound)) ?? nil
      update { $0.checkpoint.mark(mark) }
      // Without this mark there must be no other: it would tell that the bytes of this range were lost.
      if mark == nil { return }
    }
    let known = read { $0.checkpoint.marks }
    for range in (first.lowerBound == 0 ? ranges.dropFirst() : ranges[...]).prefix(Self.markedRanges)
    where !known.contains(where: { $0.range.upperBound == range.upperBound }) {
      guard let mark = (try? partial.mark(endingAt: range.upperBound, from: range.lowerBound)) ?? nil else {
        return update { $0.checkpoint.marks = [] }
      }
      update { $0.checkpoint.mark(mark, of: range) }
    }
  }
}
