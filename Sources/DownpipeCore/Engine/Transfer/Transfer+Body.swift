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
    switch plan {
    case .reject(let error):
      throw error
    case .alreadyComplete:
      reply.body.discard()
      run.update { $0.checkpoint.total = .known($0.checkpoint.ranges.prefixLength) }
      return false
    case .append(let offset, let comparing):
      (start, kept) = (offset - comparing, offset)
    case .restart(let reason):
      try await restart(partial, because: reason)
      (start, kept) = (0, 0)
    }
    let adoption = Adoption(reply, to: asked, keeping: kept, of: run.read({ $0.checkpoint }))
    let (bounds, attempt) = run.update { record in
      record.checkpoint.freshUntil = reply.freshUntil(time)
      if start == kept { adoption.apply(to: &record.checkpoint) }
      let bounds = BodyBounds(
        of: reply, from: start, comparing: kept, knownTotal: record.checkpoint.total.bytes,
        maximum: record.request.maximumSize)
      record.resumedFrom = bounds.resumesAt
      return (bounds, record.attempts)
    }
    try bounds.checkMaximum()
    // The server has stated the size now. A finished file is on the disk already, and needs no room if it is moved.
    if !bounds.compares, reply.body.file == nil { try await claimRoom() }
    run.announce(.started(attempt: attempt, from: bounds.resumesAt))
    return try await receive(reply, to: asked, bounds, trusting: trust, into: partial, adopting: adoption)
  }

  /// Removes the bytes on disk, because the reply is another file or is written from the beginning.
  private func restart(_ partial: any Partial, because reason: DownloadError?) async throws {
    // The ledger must not claim the old bytes while they are overwritten.
    if let reason { try await run.forgetBytes(because: reason) } else { try await forgetLaterRanges() }
    if try partial.size() > 0 { try partial.truncate(to: 0) }
    book.reset(to: 0)
  }

  /// Takes over the bytes of a reply: as a file, in segments, or as one body.
  private func receive(
    _ reply: SourceReply, to asked: SourceRequest, _ planned: BodyBounds, trusting trust: RangeTrust,
    into partial: any Partial, adopting adoption: Adoption
  ) async throws -> Bool {
    run.connections.store(1, ordering: .relaxed)
    defer { run.connections.store(0, ordering: .relaxed) }
    var bounds = planned
    let offset: Int64
    if bounds.compareUntil == 0, let adopted = try adoptFile(of: reply, into: partial, bounds) {
      offset = adopted
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
      let change = judgedChange(to: reply, bounds)
      let writer = BodyWriter(
        partial: partial, run: run, book: book, bounds, replacement: replacement(by: reply, to: asked, after: change))
      do {
        offset = try await write(reply.body, of: asked.url, with: writer, into: partial, adopting: adoption)
      } catch let error as DownloadError where error.code == .contentChanged {
        throw change?.described(by: error) ?? error
      }
      if writer.hasReplaced { bounds.replaced(from: writer.compareUntil, length: reply.length) }
      try await checkEnd(writer.bodyEnd.withLock { $0 }, of: asked, within: bounds, at: offset, of: partial)
    }
    try bounds.checkEnd(at: offset)
    // The expected size is that of the decoded file, which is checked after the decoding.
    let isDecoded = run.read { $0.checkpoint.contentCoding != nil } && run.chain.endOfDecoding > 0
    return try run.update { [bounds] record in
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
    run.received.store(size, ordering: .relaxed)
    run.fetched.wrappingAdd(size, ordering: .relaxed)
    return size
  }

  // MARK: A changed file

  /// What the retry policy decides if a whole reply turns out to differ from the bytes on disk; `nil` if the reply may not
  /// take their place. Asked before the body, because the difference is found on the transport's thread.
  ///
  /// A web page is most likely a log-in page: the server is asked again, as before.
  private func judgedChange(to reply: SourceReply, _ bounds: BodyBounds) -> JudgedFailure? {
    guard bounds.isWhole, bounds.compareUntil > 0,
      !MediaType.isPage(reply.mediaType) || MediaType.isPage(run.read { $0.checkpoint.mediaType })
    else { return nil }
    return run.judge(DownloadError(.contentChanged, "the file on the server has changed"))
  }

  /// The representation that takes the place of the bytes on disk if they differ, because the retry policy would restart.
  private func replacement(
    by reply: SourceReply, to asked: SourceRequest, after change: JudgedFailure?
  ) -> Adoption? {
    guard case .restart? = change?.decision else { return nil }
    return Adoption(reply, to: asked, keeping: 0, of: Checkpoint())
  }

  // MARK: Writing

  /// Notes which place has sent bytes, if there are several.
  func note(_ range: ByteRange, from url: URL) {
    guard range.length > 0, run.read({ !$0.request.mirrors.isEmpty }) else { return }
    run.state.withLock { $0.origins.note(ByteRangeSet(range), from: url) }
  }

  private func write(
    _ body: Body, of url: URL, with writer: BodyWriter, into partial: any Partial, adopting adoption: Adoption
  ) async throws -> Int64 {
    run.watchSpeed()
    defer {
      run.state.withLock { $0.watch = nil }
      // However the body ended, the written bytes count, and they are of this representation.
      let offset = writer.offset
      if offset > 0, offset >= writer.compareUntil {
        run.update { record in
          record.checkpoint.ranges.insert(before: offset)
          if writer.start < writer.compareUntil { adoption.apply(to: &record.checkpoint) }
        }
        note(writer.start..<offset, from: url)
      }
    }
    if book.isTooSmall(writer) {
      writer.noteEnd(try await body.forEachChunk { try writer.take($0) })
    } else {
      try await following.receiving {
        try await book.committing(
          writer, of: partial, adopting: writer.start < writer.compareUntil ? adoption : nil
        ) {
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
