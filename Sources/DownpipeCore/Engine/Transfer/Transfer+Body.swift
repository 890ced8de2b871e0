internal import Foundation
internal import Synchronization

// The body of a reply.
extension Transfer {
  /// Does what was planned for a reply.
  /// - Parameter time: The time of the request.
  /// - Returns: Whether another request is needed.
  func carryOut(
    _ plan: ResumePlan, of reply: SourceReply, asked: SourceRequest, at time: Date, trusting trust: RangeTrust,
    into partial: any Partial
  ) async throws -> Bool {
    let start: Int64
    let kept: Int64
    var knownTotal = run.read { $0.checkpoint.total.bytes }
    let isNotEmpty = knownTotal ?? 0 > 0
    switch plan {
    case .reject(let error):
      throw error
    case .alreadyComplete:
      reply.body.discard()
      run.update { $0.checkpoint.total = .known($0.checkpoint.ranges.prefixLength) }
      return false
    case .append(let offset, let comparing):
      // A whole body would overwrite the bytes behind a gap before anything proves it.
      if reply.coverage == .whole, run.read({ $0.checkpoint.ranges.end > offset }),
        segments(of: reply, comparing: offset, trusting: trust) == nil
      {
        let error = DownloadError(
          .rangeIgnored, "the server sends the file as a whole only: it is fetched beside the parts on disk")
        throw AnotherVersion(because: error, isProven: true, beginningWith: (asked, time, reply))
      }
      (start, kept) = (offset - comparing, offset)
    case .begin(let end):
      if try partial.size() > 0 { try partial.truncate(to: 0) }
      book.reset(to: 0)
      (start, kept, knownTotal) = (0, 0, end)
    case .replace(let reason):
      throw AnotherVersion(because: reason, beginningWith: (asked, time, reply))
    }
    let before = run.read { ($0.checkpoint.facts, $0.versions.mayChange) }
    let adoption = Adoption(reply, to: asked, keeping: kept, of: run.read({ $0.checkpoint }))
    let (bounds, attempt) = run.update { [knownTotal] record in
      record.checkpoint.freshUntil = reply.freshUntil(time)
      if kept == 0 { record.checkpoint.total = ByteCount(knownTotal) }
      if start == kept { adoption.apply(to: &record) }
      let bounds = BodyBounds(
        of: reply, from: start, comparing: kept, knownTotal: knownTotal, maximum: record.request.maximumSize,
        isNotEmpty: isNotEmpty)
      record.resumedFrom = bounds.resumesAt
      return (bounds, record.attempts)
    }
    try bounds.checkMaximum()
    // The server has stated the size now. A finished file is on the disk already, and needs no room if it is moved.
    if !bounds.compares, reply.body.file == nil { try await claimRoom() }
    run.announce(.started(attempt: attempt, from: bounds.resumesAt))
    return try await receive(
      reply, to: asked, bounds, trusting: trust, into: partial, adopting: adoption, since: before)
  }

  /// Takes over the bytes of a reply: as a file, in segments, or as one body.
  private func receive(
    _ reply: SourceReply, to asked: SourceRequest, _ bounds: BodyBounds, trusting trust: RangeTrust,
    into partial: any Partial, adopting adoption: Adoption, since before: (facts: Checkpoint, mayChange: Bool)
  ) async throws -> Bool {
    run.connections.store(1, ordering: .relaxed)
    defer { run.connections.store(0, ordering: .relaxed) }
    let offset: Int64
    if bounds.compareUntil == 0, let adopted = try adoptFile(of: reply, into: partial, bounds) {
      offset = adopted
      try bounds.checkEnd(at: offset)
      note(0..<offset, from: asked.url)
    } else {
      if !bounds.compares { try await claimRoom() }
      if let (session, total) = segments(of: reply, comparing: bounds.compareUntil, trusting: trust) {
        try await write(
          reply, to: asked, from: bounds.start, at: bounds.compareUntil, of: total, in: session, into: partial,
          adopting: bounds.compares ? adoption : nil)
        return false
      }
      try await forgetLaterRanges()
      let kept = bounds.compareUntil > 0 ? ByteRangeSet(0..<bounds.compareUntil) : ByteRangeSet()
      let writer = BodyWriter(partial: partial, run: run, book: book, bounds, keeping: kept)
      do {
        offset = try await write(
          reply.body, of: asked.url, with: writer, into: partial, adopting: bounds.compares ? adoption : nil)
        try bounds.checkEnd(at: offset)
      } catch let error as DownloadError where Self.contradictions.contains(error.code) && !bounds.isEndAnnounced {
        giveUp(bounds, since: before)
        throw error
      }
      try await checkEnd(writer.bodyEnd.withLock { $0 }, of: asked, within: bounds, at: offset, of: partial)
    }
    // The expected size is that of the decoded file, which is checked after the decoding.
    let isDecoded = run.read { $0.checkpoint.contentCoding != nil } && run.chain.endOfDecoding > 0
    return try run.update { record in
      Result { () throws(DownloadError) in
        try bounds.finish(
          at: offset, in: &record.checkpoint, expected: isDecoded ? nil : record.request.expectedSize.bytes)
      }
    }.get()
  }

  /// Moves a finished file of the transport into the partial, if the storage can do that.
  private func adoptFile(of reply: SourceReply, into partial: any Partial, _ bounds: BodyBounds) throws -> Int64? {
    guard let file = reply.body.file, try partial.adopt(file) else { return nil }
    let size = try partial.size()
    try bounds.checkFile(of: size)
    run.fetched.wrappingAdd(size, ordering: .relaxed)
    return size
  }

  /// Gives up what has come of a body that contradicts what is known: it has brought no bytes of the file.
  private func giveUp(_ bounds: BodyBounds, since before: (facts: Checkpoint, mayChange: Bool)) {
    guard !bounds.compares else {
      run.findings.withLock { $0.hasOtherBytes = true }
      run.update { $0.checkpoint.cut(to: bounds.compareUntil) }
      return book.reset(to: bounds.compareUntil)
    }
    run.forgetBytes()
    run.update { ($0.checkpoint, $0.versions.mayChange) = (before.facts, before.mayChange) }
    book.reset(to: 0)
  }

  /// The errors of bodies that contradict what is known of the file.
  private static let contradictions: Set<DownloadError.Code> = [.contentChanged, .sizeChanged]

  // MARK: Writing

  /// Notes which place has sent bytes, if there are several.
  func note(_ range: ByteRange, from url: URL) {
    guard range.length > 0, run.read({ !$0.request.mirrors.isEmpty }) else { return }
    run.findings.withLock { $0.origins.note(ByteRangeSet(range), from: url) }
  }

  /// Writes a body, which may end early, and notes the bytes that it has brought.
  /// - Returns: The position of its end.
  func write(
    _ body: Body, of url: URL, with writer: BodyWriter, into partial: any Partial, adopting adoption: Adoption?
  ) async throws -> Int64 {
    run.watchSpeed()
    defer {
      run.state.withLock { $0.watch = nil }
      // However the body ended, the written bytes count, and they are of this representation.
      let (offset, bounds) = (writer.offset, writer.bounds)
      if offset > 0, offset >= bounds.compareUntil {
        run.update { record in
          if bounds.compareUntil == 0 {
            record.checkpoint.ranges.insert(before: offset)
          } else {
            record.checkpoint.ranges.insert(contentsOf: bounds.compareUntil..<offset)
          }
          adoption?.apply(to: &record)
        }
        note(bounds.start..<offset, from: url)
      }
      run.written.store(-1, ordering: .relaxed)
    }
    if book.isTooSmall(writer) {
      writer.noteEnd(try await body.forEachChunk { try writer.take($0) })
    } else {
      try await following.receiving {
        try await book.committing(writer, of: partial, adopting: adoption) {
          writer.noteEnd(try await body.forEachChunk { try writer.take($0) })
        }
      }
    }
    return writer.offset
  }
}

extension Run {
  /// Starts to measure the speed of a body.
  func watchSpeed() {
    guard let minimum = context.options.minimumSpeed else { return }
    let bytes = fetched.load(ordering: .relaxed)
    state.withLock { $0.watch = SpeedWatch(minimum, at: context.time.now, bytes: bytes) }
  }
}
