/// Where the body of one reply begins and has to end, and what it means that it has ended.
struct BodyBounds: Sendable {
  /// The position of the body's first byte.
  let start: Int64
  /// Bytes before this position are on disk, and are compared.
  let compareUntil: Int64
  /// Whether the reply is the whole file.
  let isWhole: Bool
  /// The position after the last byte; `nil` if it is not known.
  let end: Int64?
  /// Whether the reply has announced its end; otherwise the file is known to end there.
  let isEndAnnounced: Bool
  /// The most bytes that the file may have; `nil` for any number.
  let maximum: Int64?

  /// Whether the file is known not to be empty.
  let isNotEmpty: Bool

  /// - Parameters:
  ///   - knownTotal: The size of the file, as far as it is known and binds the reply.
  ///   - isNotEmpty: Whether the file is known not to be empty.
  init(
    of reply: SourceReply, from start: Int64, comparing compareUntil: Int64, knownTotal: Int64?, maximum: Int64?,
    isNotEmpty: Bool = false
  ) {
    self.isNotEmpty = isNotEmpty
    self.start = start
    self.compareUntil = compareUntil
    self.maximum = maximum
    isWhole = reply.coverage == .whole
    let announced = if case .range(let range, _) = reply.coverage { range.upperBound } else { reply.length.bytes }
    isEndAnnounced = announced != nil
    // A reply without a length has to end where the file is known to end.
    end = announced ?? (isWhole ? knownTotal : nil)
  }

  /// Whether the representation continues bytes on disk that are compared first.
  var compares: Bool { start < compareUntil }

  /// The position from which the reply continues the file: 0 for a whole file, which is fetched anew.
  var resumesAt: Int64 { isWhole ? 0 : compareUntil }

  // MARK: Before the body

  /// - Throws: `.tooLarge` if the reply announces more bytes than the file may have.
  func checkMaximum() throws(DownloadError) { try checkMaximum(end) }

  private func checkMaximum(_ size: Int64?) throws(DownloadError) {
    guard let maximum, let size, size > maximum else { return }
    throw DownloadError(.tooLarge, "the file has \(size) bytes, but the maximum is \(maximum)")
  }

  // MARK: After the body

  /// Checks the size of a finished file of the transport.
  func checkFile(of size: Int64) throws(DownloadError) {
    try checkMaximum(size)
    if let end, size > end {
      throw DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
    }
  }

  /// Checks where a body has ended.
  func checkEnd(at offset: Int64) throws(DownloadError) {
    if offset == 0, isWhole, isNotEmpty {
      throw DownloadError(.contentChanged, "the server now sends an empty body: \(ReplyRow.empty.reason)")
    }
    if !isEndAnnounced, !compares, let end, offset < end {
      throw DownloadError(
        .contentChanged, "the server now sends \(offset) bytes, not \(end): \(ReplyRow.otherSize.reason)")
    }
    if let end, offset < end {
      throw DownloadError(.lengthMismatch, "the body ended after \(offset) of \(end) bytes")
    }
    if offset >= compareUntil { return }
    throw isWhole
      ? DownloadError(.sizeChanged, "the file on the server has \(offset) bytes, which does not fit the bytes on disk")
      : DownloadError(.lengthMismatch, "the body ended before all bytes on disk were compared")
  }

  /// Adds the bytes before the end of a body to the checkpoint, and the size of the file if the end proves it.
  ///
  /// - Parameter expected: The size that the bytes must have; `nil` if it is not known.
  /// - Returns: Whether another request is needed.
  func finish(at offset: Int64, in checkpoint: inout Checkpoint, expected: Int64?) throws(DownloadError) -> Bool {
    checkpoint.ranges.insert(before: offset)
    switch checkpoint.total {
    case .known(let total) where offset < total:
      // A server may send less than was requested. The rest is requested again as long as there is progress.
      if offset > compareUntil { return true }
      throw DownloadError(.lengthMismatch, "the server sends no bytes after byte \(offset) of \(total)")
    case .known:
      return false
    case .unknown where !isWhole && offset > compareUntil:
      // A range of a file of unknown size may be less than the rest: only a reply without new bytes proves the end.
      return true
    case .unknown:
      // The bytes may be fewer because the connection ended early: they are not the whole file then.
      if let expected, expected != offset {
        throw DownloadError(.lengthMismatch, "the file has \(offset) bytes, but \(expected) were expected")
      }
      checkpoint.total = .known(offset)
      return false
    }
  }
}
