extension Checkpoint {
  /// Removes the bytes from an offset on, and the marks that cover any of them.
  mutating func cut(to size: Int64) {
    ranges.remove(contentsOf: max(0, size)..<Int64.max)
    marks.removeAll { $0.range.upperBound > size }
  }

  /// Adds the newest mark. Without one it removes all marks, because bytes after the last mark would otherwise be cut
  /// off.
  ///
  /// Few marks are kept, and older ones at larger distances: the farthest one between 1 and 2 MiB before the end, then
  /// between 2 and 4 MiB, between 4 and 8 MiB, and so on. So a file of any size has a mark close to the place at which
  /// a disk has lost bytes.
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
