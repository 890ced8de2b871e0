internal import Foundation
internal import Synchronization

// A single request and its reply.
extension Transfer {
  /// Sends one request and writes the reply's body.
  /// - Returns: Whether another request is needed because the server sent fewer bytes than are missing.
  func transferOnce(from url: URL, trusting trust: RangeTrust, into partial: any Partial) async throws -> Bool {
    let (isAsking, checkpoint, attempt) = run.read {
      ($0.isAsking, $0.isAsking ? Checkpoint() : $0.checkpoint, $0.attempts)
    }
    let have = checkpoint.ranges.prefixLength
    if case .known(let total) = checkpoint.total, have == total, have > 0 { return false }

    guard let (source, session) = run.stages.source(for: url) else {
      throw DownloadError(
        .unsupportedURL, "no source of this pipeline accepts “\(url.scheme ?? "")” URLs"
      ).located(stage: nil, url: url, attempt: attempt)
    }
    let connection = try await openConnection(to: url)
    defer { if let connection { run.context.connections.close(connection) } }
    do {
      let (expectedSize, expectsDigest) = run.read {
        ($0.request.expectedSize.bytes, $0.request.expectsDigest)
      }
      let hasDigest = expectsDigest && run.read { $0.request.steps }.verifiesDigests(of: run.pipeline.steps)
      let validation = run.context.options.resumeValidation
      // An entity tag applies to one resource only.
      let question = ResumePlan.question(
        for: checkpoint, validation: validation, hasDigest: hasDigest,
        trust: checkpoint.isElsewhere(than: url) ? min(trust, .overlap) : trust)
      var ask = request(question.range, question.validator, for: url)
      if isAsking {
        ask.condition = run.condition(for: url)
        if ask.condition != nil { ask.conditionSize = run.read { $0.checkpoint.total.bytes } }
      }
      // Small files have arrived before a limit of the rate can hold them up: the next ones wait for it.
      try await ask.pace.keep(after: 0)
      let asked = run.context.time.date
      let reply = try await open(ask, in: session)
      announceRedirects(of: reply, asked: url)
      do {
        if isAsking {
          switch try judge(reply, to: ask, asked: asked) {
          case .unchanged: return false
          case .askAgain: return true
          case .plan: break
          }
        }
        var plan = ResumePlan.decide(
          checkpoint: checkpoint, request: ask, reply: reply, validation: validation,
          // The expected size is that of the decoded file.
          expectedSize: expectedSize != nil && run.decodes(reply, to: ask) ? nil : expectedSize,
          hasDigest: hasDigest)
        if run.context.options.sabotage == .restartsAlways, case .append = plan {
          plan = .restart(because: DownloadError(.contentChanged, "sabotage"))
        }
        run.context.options.probe?.note(.planned(run.id, plan))
        noteRanges(of: reply, asked: ask, plan)
        if isAsking, case .restart = plan { try await fetchAnew() }
        return try await carryOut(plan, of: reply, asked: ask, at: asked, trusting: trust, into: partial)
      } catch {
        if !keepsFile(of: reply, after: error, received: have) { reply.body.discard() }
        throw error
      }
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: .network, stage: source.name).located(
        stage: source.name, url: url, attempt: attempt)
    }
  }

  func request(
    _ range: RequestedRange?, _ validator: Validator?, for url: URL, isNamedByServer: Bool = false
  ) -> SourceRequest {
    let (request, attempt) = run.read { ($0.request, $0.attempts) }
    let isNamedByServer = isNamedByServer || request.isNamedByServer
    return SourceRequest(
      url: url, id: run.id, range: range, validator: validator,
      headers: isNamedByServer ? request.headers.forEverybody : request.headers(for: url), metadata: request.metadata,
      attempt: attempt, hasFreshLink: run.state.withLock { $0.hasFreshLink },
      isNamedByServer: isNamedByServer, pace: TransferPace(time: run.context.time, limits: RunPace(run).pause))
  }

  /// Sends a request for a range of the file, beside others.
  func request(
    _ range: RequestedRange, _ validator: Validator?, of place: SegmentPlaces.Place
  ) async throws -> (SourceRequest, SourceReply) {
    let url = place.url
    guard let (_, session) = run.stages.source(for: url) else {
      throw DownloadError(.unsupportedURL, "no source of this pipeline accepts “\(url.scheme ?? "")” URLs")
    }
    let ask = request(range, validator, for: url, isNamedByServer: place.isNamedByServer)
    return (ask, try await open(ask, in: session))
  }

  func announceRedirects(of reply: SourceReply, asked url: URL) {
    for hop in reply.redirects { run.announce(.redirected(to: hop.redacted)) }
    // Some sources know only where they ended.
    guard reply.redirects.isEmpty, let final = reply.finalURL, final != url else { return }
    run.announce(.redirected(to: final.redacted))
  }

  /// Whether the source keeps the finished file of a reply, because the next opening requests the same bytes again.
  ///
  /// The file is as good as before if the error is one of this device, or if the run was stopped and its download goes
  /// on later. After another error, and when some of its bytes have been copied, the next request is a different one.
  /// - Parameter before: The number of bytes on disk before the reply.
  private func keepsFile(of reply: SourceReply, after error: any Error, received before: Int64) -> Bool {
    guard reply.body.file != nil, run.read({ $0.checkpoint.ranges.prefixLength }) == before else { return false }
    if let error = error as? DownloadError { return Self.ofTheDevice.contains(error.code) }
    return switch run.stopReason {
    case .gate, .limit, .pause, .pauseAll, .shutdown, .suspend: error is CancellationError
    default: false
    }
  }

  private static let ofTheDevice: Set<DownloadError.Code> = [.noSpace, .permission, .inUse, .ledger]

  /// Remembers that a server ignores ranges: this downloader requests no more ranges of the URL.
  private func noteRanges(of reply: SourceReply, asked: SourceRequest, _ plan: ResumePlan) {
    guard asked.range != nil, case .append = plan, case .whole = reply.coverage else { return }
    run.context.trust.lower(asked.url, to: .none)
    run.announce(
      .refused(
        DownloadError(.rangeIgnored, "the server sent the whole file instead of the rest").located(
          stage: nil, url: asked.url, attempt: asked.attempt)))
  }

  /// Opens the URL through the interceptors; the first one is the outermost.
  func open(_ request: SourceRequest, in session: any SourceSession) async throws -> SourceReply {
    if run.pipeline.interceptors.isEmpty { return try await session.open(request) }
    return try await openIntercepted(request, in: session)
  }

  @inline(never)  // The frame is larger than that of an opening without interceptors, and waits for the server.
  private func openIntercepted(_ request: SourceRequest, in session: any SourceSession) async throws -> SourceReply {
    try await run.opening(session)(request)
  }

  // MARK: The plan

  private func carryOut(
    _ plan: ResumePlan, of reply: SourceReply, asked: SourceRequest, at time: Date, trusting trust: RangeTrust,
    into partial: any Partial
  ) async throws -> Bool {
    let start: Int64
    var compareUntil: Int64
    let isWhole = reply.coverage == .whole
    switch plan {
    case .reject(let error):
      throw error
    case .alreadyComplete:
      reply.body.discard()
      run.update { $0.checkpoint.total = .known($0.checkpoint.ranges.prefixLength) }
      return false
    case .append(let offset, let comparing):
      start = offset - comparing
      compareUntil = offset
    case .restart(let reason):
      // The ledger must not claim the old bytes while they are overwritten.
      if let reason {
        try await run.forgetBytes(because: reason)
      } else {
        try await forgetLaterRanges()
      }
      if try partial.size() > 0 { try partial.truncate(to: 0) }
      book.reset(to: 0)
      start = 0
      compareUntil = 0
    }
    let adoption = Adoption(reply, to: asked, keeping: compareUntil, of: run.read({ $0.checkpoint }))
    let (maximum, attempt, knownTotal) = run.update { record in
      record.resumedFrom = isWhole ? 0 : compareUntil
      record.checkpoint.freshUntil = reply.freshUntil(time)
      if start == compareUntil { adoption.apply(to: &record.checkpoint) }
      return (record.request.maximumSize, record.attempts, record.checkpoint.total.bytes)
    }
    // A reply without a length has to end where the file is known to end.
    let announcedEnd = end(of: reply)
    var end = announcedEnd ?? (compareUntil > 0 && isWhole ? knownTotal : nil)
    if let maximum, let end, end > maximum {
      throw DownloadError(.tooLarge, "the file has \(end) bytes, but the maximum is \(maximum)")
    }
    // The server has stated the size now. A finished file is on the disk already, and needs no room if it is moved.
    if start == compareUntil, reply.body.file == nil { try await claimRoom() }
    run.announce(.started(attempt: attempt, from: isWhole ? 0 : compareUntil))

    let offset: Int64
    if compareUntil == 0, let adopted = try adoptFile(of: reply, into: partial, end: end, maximum: maximum) {
      offset = adopted
      note(0..<offset, from: asked.url)
    } else {
      if start == compareUntil { try await claimRoom() }
      let segments = segments(of: reply, comparing: compareUntil, trusting: trust)
      if let (session, total) = segments {
        try await write(
          reply, to: asked, from: start, at: compareUntil, of: total, in: session, into: partial,
          adopting: start < compareUntil ? adoption : nil)
        return false
      }
      try await forgetLaterRanges()
      let writer = BodyWriter(
        partial: partial, run: run, book: book, start: start, compareUntil: compareUntil, end: end,
        isEndAnnounced: announcedEnd != nil, maximumSize: maximum,
        replacement: isWhole && compareUntil > 0 && mayReplace(reply)
          ? Adoption(reply, to: asked, keeping: 0, of: Checkpoint()) : nil)
      offset = try await write(reply.body, of: asked.url, with: writer, into: partial, adopting: adoption)
      if writer.hasReplaced { (end, compareUntil) = (reply.length.bytes, writer.compareUntil) }
    }
    if let end, offset < end {
      throw DownloadError(.lengthMismatch, "the body ended after \(offset) of \(end) bytes")
    }
    guard offset >= compareUntil else {
      throw isWhole
        ? DownloadError(
          .sizeChanged, "the file on the server has \(offset) bytes, which does not fit the bytes on disk")
        : DownloadError(.lengthMismatch, "the body ended before all bytes on disk were compared")
    }
    return try settle(offset, resumedAt: compareUntil, isWhole: isWhole)
  }

  /// Whether a whole reply that differs from the bytes on disk may take their place. A web page is most likely a log-in
  /// page: the server is asked again, as before.
  private func mayReplace(_ reply: SourceReply) -> Bool {
    !MediaType.isPage(reply.mediaType) || MediaType.isPage(run.read { $0.checkpoint.mediaType })
  }

  private func end(of reply: SourceReply) -> Int64? {
    if case .range(let range, _) = reply.coverage { range.upperBound } else { reply.length.bytes }
  }

  /// Moves a finished file of the transport into the partial, if the storage can do that.
  private func adoptFile(
    of reply: SourceReply, into partial: any Partial, end: Int64?, maximum: Int64?
  ) throws -> Int64? {
    guard let file = reply.body.file, try partial.adopt(file) else { return nil }
    let size = try partial.size()
    if let maximum, size > maximum {
      throw DownloadError(.tooLarge, "the file has \(size) bytes, but the maximum is \(maximum)")
    }
    if let end, size > end {
      throw DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
    }
    run.received.store(size, ordering: .relaxed)
    run.fetched.wrappingAdd(size, ordering: .relaxed)
    return size
  }

  /// Whether another request is needed after `offset` bytes have been received.
  private func settle(_ offset: Int64, resumedAt start: Int64, isWhole: Bool) throws -> Bool {
    // The expected size is that of the decoded file, which is checked after the decoding.
    let isDecoded = run.read { $0.checkpoint.contentCoding != nil } && run.chain.endOfDecoding > 0
    return try run.update { record -> Result<Bool, DownloadError> in
      record.checkpoint.ranges.insert(before: offset)
      switch record.checkpoint.total {
      case .known(let total) where offset < total:
        // A server may send less than was requested. The rest is requested again as long as there is progress.
        if offset > start { return .success(true) }
        return .failure(DownloadError(.lengthMismatch, "the server sends no bytes after byte \(offset) of \(total)"))
      case .known:
        return .success(false)
      case .unknown where !isWhole && offset > start:
        // A range of a file of unknown size may be less than the rest: only a reply without new bytes proves the end.
        return .success(true)
      case .unknown:
        // The bytes may be fewer because the connection ended early: they are not the whole file then.
        if !isDecoded, let expected = record.request.expectedSize.bytes, expected != offset {
          return .failure(
            DownloadError(.lengthMismatch, "the file has \(offset) bytes, but \(expected) were expected"))
        }
        record.checkpoint.total = .known(offset)
        return .success(false)
      }
    }.get()
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
      try await body.forEachChunk { try writer.take($0) }
    } else {
      try await following.receiving {
        try await book.committing(
          writer, of: partial, adopting: writer.start < writer.compareUntil ? adoption : nil
        ) {
          try await body.forEachChunk { try writer.take($0) }
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
