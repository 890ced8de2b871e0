extension RawSpan {
  /// The number of bytes before the first one that differs from those on disk; `nil` if there is none.
  func firstDifference(from onDisk: [UInt8]) -> Int? {
    withUnsafeBytes { fresh in
      onDisk.withUnsafeBytes { kept in
        if kept.count == fresh.count, fresh.elementsEqual(kept) { return nil }
        return zip(fresh, kept).prefix { $0 == $1 }.count
      }
    }
  }
}
