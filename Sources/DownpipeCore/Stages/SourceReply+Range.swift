extension SourceReply {
  /// Makes this the reply of a source that has the whole file at hand: to a range, if one is requested, or with all of it.
  ///
  /// - Parameters:
  ///   - range: The requested range; `nil` for the whole file.
  ///   - size: The size of the file in bytes.
  /// - Returns: The bytes to send; `nil` if the range begins behind the end of the file.
  /// - Throws: `DownloadError` with `.invalidRequest` for an empty range.
  package mutating func serve(_ range: RequestedRange?, of size: Int64) throws(DownloadError) -> ByteRange? {
    guard let range else {
      coverage = .whole
      length = .known(size)
      return 0..<size
    }
    guard range.start >= 0, range.end.map({ $0 > range.start }) ?? true else {
      throw DownloadError(.invalidRequest, "the range \(range.field) is empty: request at least one byte")
    }
    guard range.start < size else {
      coverage = .none(.rangeNotSatisfiable(total: .known(size)))
      length = .known(0)
      return nil
    }
    let bytes = range.start..<min(range.end ?? size, size)
    coverage = .range(bytes, total: .known(size))
    length = .known(bytes.upperBound - bytes.lowerBound)
    return bytes
  }
}
