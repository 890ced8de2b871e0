extension SourceReply {
  /// Returns the reply if its numbers can be those of a file; otherwise it discards the body. A source or an interceptor
  /// may have computed them.
  /// - Throws: ``DownloadError`` with `.invalidResponse`.
  func checked() throws(DownloadError) -> SourceReply {
    guard let wrong = wrongNumber else { return self }
    body.discard()
    throw DownloadError(
      .invalidResponse,
      "the source has replied with \(wrong), which no file has: it must state `.unknown` for a number that it does not "
        + "know")
  }

  private var wrongNumber: String? {
    if let size = Self.negative(length) { return "a length of \(size) bytes" }
    for coverage in [coverage, claimedRange].compactMap(\.self) {
      switch coverage {
      case .range(let range, _) where range.lowerBound < 0: return "a range from byte \(range.lowerBound) on"
      case .range(_, let total), .none(.rangeNotSatisfiable(let total)):
        if let size = Self.negative(total) { return "a total of \(size) bytes" }
      default: break
      }
    }
    return nil
  }

  private static func negative(_ count: ByteCount) -> Int64? {
    if case .known(let bytes) = count, bytes < 0 { bytes } else { nil }
  }

  /// Returns the reply with the coverage that its bytes have if they are what it says, also where it says so in an unusual
  /// way.
  ///
  /// - A 206 that nothing has asked for, from the first byte to the last: the whole file.
  /// - A 200 whose `Content-Range` is the one that was asked for, or which has just the length that was asked for: that range.
  ///   The compared bytes prove it or not.
  /// - A 200 whose `Content-Range` is another part of the file: unreadable.
  ///
  /// - Parameter total: The size of the file, as far as it is known.
  package func asRead(to request: SourceRequest, total known: ByteCount) -> SourceReply {
    var reply = self
    switch (coverage, claimedRange) {
    case (.range(let range, .known(let total)), _)
    where request.range == nil && contentCoding == nil && range == 0..<total
      && (length == .unknown || length == .known(total)):
      (reply.coverage, reply.length) = (.whole, .known(total))
    case (.whole, .range(let range, let total)):
      let count = range.upperBound - range.lowerBound
      let hasLength = length == .unknown || length == .known(count)
      if hasLength, range.lowerBound == 0, total == .unknown || total == .known(count) {
        reply.length = .known(count)
      } else if hasLength, request.range?.start == range.lowerBound {
        (reply.coverage, reply.length) = (.range(range, total: total), .known(count))
      } else {
        reply.coverage = .unreadable("200 with a Content-Range from \(range.lowerBound) to \(range.upperBound)")
      }
    case (.whole, _):
      guard let asked = request.range, asked.start > 0, case .known(let total) = known, let length = length.bytes,
        length != total, length > 0, length == (asked.end ?? total) - asked.start
      else { break }
      reply.coverage = .range(asked.start..<asked.start + length, total: known)
    default: break
    }
    return reply
  }

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
