extension Checkpoint {
  /// Removes the bytes from an offset on, and the marks that cover any of them.
  mutating func cut(to size: Int64) { remove(max(0, size)..<Int64.max) }

  /// Removes bytes, and the marks that cover any of them.
  mutating func remove(_ bytes: ByteRange) {
    ranges.remove(contentsOf: bytes)
    marks.removeAll { $0.range.overlaps(bytes) }
  }

  /// Removes all bytes that are not in a set, and the marks that cover any of them.
  mutating func keep(only bytes: ByteRangeSet) {
    ranges.formIntersection(bytes)
    removeStrayMarks()
  }

  /// Removes the marks of bytes that are not in the checkpoint.
  mutating func removeStrayMarks() {
    if marks.isEmpty { return }
    marks.removeAll { !ranges.contains($0.range) }
  }

  /// Removes the last byte of a complete file, so that the bytes are compared with those of a server before they count
  /// as complete again.
  mutating func doubt() {
    isComplete = false
    guard case .known(let total) = total, total > 0, ranges.prefixLength == total else { return }
    remove(total - 1..<total)
  }

  /// Replaces the marks of a range behind missing bytes.
  mutating func mark(_ mark: BlockMark, of range: ByteRange) {
    marks.removeAll { range.contains($0.range) }
    let index = marks.firstIndex { $0.range.lowerBound > mark.range.lowerBound } ?? marks.endIndex
    marks.insert(mark, at: index)
  }

  /// Adds the newest mark of the bytes from byte 0 on. Without one it removes all marks, because bytes after the last
  /// mark would otherwise be cut off. Marks of later ranges are kept.
  ///
  /// Few marks are kept, and older ones at larger distances: the farthest one between 1 and 2 MiB before the end, then
  /// between 2 and 4 MiB, between 4 and 8 MiB, and so on. So a file of any size has a mark close to the place at which
  /// a disk has lost bytes.
  mutating func mark(_ mark: BlockMark?) {
    guard let mark else {
      marks = []
      return
    }
    let end = ranges.prefixLength
    let others = marks.filter { $0.range.lowerBound > end }
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
    marks = kept.reversed() + others
  }
}
