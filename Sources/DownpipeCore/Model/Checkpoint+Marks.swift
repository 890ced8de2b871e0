extension Checkpoint {
  /// Lets go of the bytes from a position on, and of the marks that cover any of them.
  mutating func cut(to size: Int64) {
    ranges.remove(contentsOf: max(0, size)..<Int64.max)
    marks.removeAll { $0.range.upperBound > size }
  }

  /// Adds the newest mark, or none at all when there is no such mark: what older ones do not cover would be
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
