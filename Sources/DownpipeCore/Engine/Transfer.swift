internal import Foundation
internal import Synchronization

/// Gets the bytes of a download onto the disk: asks, plans, writes, until all are there.
struct Transfer: Sendable {
  let attempt: Attempt

  var run: Run { attempt.run }
  private var pipeline: Pipeline { attempt.pipeline }

  /// Transfers what is missing, from the URL and then from its mirrors.
  func perform() async throws -> Artifact {
    let storage = attempt.storage
    let partial = try await attempt.located(storage.name) { try await storage.openPartial(run.key, isNew: false) }
    var isClosed = false
    do {
      try await checkTail(of: partial)
      if let headStart = run.read({ $0.request.headStart }) { try await take(headStart, into: partial) }
      try await transferFromAny(into: partial)
      return try await attempt.located(storage.name) {
        let checkpoint = run.read { $0.checkpoint }
        if case .known(let total) = checkpoint.total, try partial.size() > total { try partial.truncate(to: total) }
        try await flush(partial)
        // Older marks alone would not vouch for the end.
        if !checkpoint.marks.isEmpty { markTail(of: partial) }
        isClosed = true
        try close(partial)
        run.update { $0.checkpoint.isComplete = true }
        return try partial.artifact(name: checkpoint.name ?? "download", mediaType: checkpoint.mediaType)
      }
    } catch {
      await keepBytes(of: partial, isClosed: isClosed)
      throw error
    }
  }

  /// Makes durable what was written, and remembers when that fails.
  private func flush(_ partial: any Partial) async throws {
    do {
      try await partial.synchronize()
    } catch let error where !(error is CancellationError) {
      run.state.withLock { $0.flushHasFailed = true }
      throw error
    }
  }

  /// Ends writing. Where the storage can, the partial stays held until the attempt has ended.
  private func close(_ partial: any Partial) throws {
    do {
      try run.finish(partial)
    } catch {
      run.state.withLock { $0.flushHasFailed = true }
      throw error
    }
  }

  private func transferFromAny(into partial: any Partial) async throws {
    let urls = run.read { [$0.request.url] + $0.request.mirrors }
    var offline: DownloadError?
    for (index, url) in urls.enumerated() {
      do {
        while try await transferTrusting(url, into: partial) { try await checkpointBetweenBodies(partial) }
        return
      } catch let error as DownloadError {
        // Another mirror is only asked when trying this one again makes no sense. What mirrors answer in the place of
        // one to which there was no way is not the last word.
        guard index + 1 < urls.count, run.stopSignal.reason == nil, Self.sourceFaults.contains(error.code),
          isFinal(error, isMirror: index > 0)
        else { throw offline ?? error }
        if error.code == .offline { offline = error }
        attempt.announce(.attemptFailed(error.located(stage: nil, url: url, attempt: run.record.attempts)))
      }
    }
  }

  /// Whether the retry policy would not try the same place again.
  private func isFinal(_ error: DownloadError, isMirror: Bool) -> Bool {
    let decision = pipeline.retry.decide(
      Failure(
        error: error, consecutive: run.record.consecutiveFailures + 1, attempts: run.record.attempts,
        random: attempt.options.random(), now: attempt.options.time.date))
    return switch decision {
    case .giveUp: true
    // Only the first link is renewed.
    case .refresh: pipeline.refresher == nil || isMirror
    // There may be a way to another one; what is on disk is worth waiting for.
    case .wait(for: .network, _): run.record.checkpoint.ranges.isEmpty
    case .resume, .restart, .wait: false
    }
  }

  private static let sourceFaults: Set<DownloadError.Code> = [
    .network, .offline, .hostNotFound, .tls, .timedOut, .httpStatus, .invalidResponse, .tooManyRedirects, .wrongRange,
    .wrongRangeEnd, .unreadableRange, .multipartRange, .wrongContentCoding, .rangeNotSatisfiable, .unproven,
    .lengthMismatch, .unsupportedURL, .linkExpired, DownloadError.Code("fileNotFound"),
  ]

  /// Asks once; when the answer's range cannot be used, asks at once in a way that depends less on the server, as
  /// long as there is one. What is on disk stays.
  private func transferTrusting(_ url: URL, into partial: any Partial) async throws -> Bool {
    // Kept here too: the memory of the run has no room for any number of URLs.
    var trust = attempt.trust.level(of: url)
    while true {
      do {
        return try await transferOnce(from: url, trusting: trust, into: partial)
      } catch let error as DownloadError {
        guard run.stopSignal.reason == nil, let less = RangeTrust.left(after: error.code, of: trust),
          !run.record.checkpoint.ranges.isEmpty
        else { throw error }
        trust = less
        attempt.trust.lower(url, to: less)
        attempt.announce(.refused(error))
      }
    }
  }

  // MARK: One request

  /// Asks once and writes what comes.
  /// - Returns: whether more has to be asked for, since the server answered with less than all.
  private func transferOnce(
    from url: URL, trusting trust: RangeTrust, into partial: any Partial
  ) async throws -> Bool {
    let record = run.record
    let checkpoint = record.checkpoint
    let have = checkpoint.ranges.prefixLength
    if case .known(let total) = checkpoint.total, have == total, have > 0 { return false }

    guard let source = pipeline.sources.first(where: { $0.accepts(url) }) else {
      throw DownloadError(
        .unsupportedURL, "no source of this pipeline takes “\(url.scheme ?? "")” URLs"
      ).located(
        stage: nil, url: url, attempt: record.attempts)
    }
    do {
      let hasDigest = !record.request.expectedDigests.isEmpty && pipeline.steps.contains(where: \.verifiesDigests)
      let validation = attempt.options.resumeValidation
      // What an entity tag says of one resource it does not say of another one.
      let question = ResumePlan.question(
        for: checkpoint, validation: validation, hasDigest: hasDigest,
        trust: checkpoint.isElsewhere(than: url) ? min(trust, .overlap) : trust)
      let ask = SourceRequest(
        url: url, id: run.id, range: question.range, validator: question.validator, headers: record.request.headers,
        attempt: record.attempts, hasFreshLink: run.state.withLock { $0.hasFreshLink })
      let reply = try await open(ask, with: source)
      do {
        let plan = ResumePlan.decide(
          checkpoint: checkpoint, request: ask, reply: reply, validation: validation,
          expectedSize: record.request.expectedSize, hasDigest: hasDigest)
        noteRanges(of: reply, asked: ask, plan)
        return try await carryOut(plan, of: reply, asked: ask, into: partial)
      } catch {
        reply.body.discard()
        throw error
      }
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: .network, stage: source.name).located(
        stage: source.name, url: url, attempt: record.attempts)
    }
  }

  /// Remembers a server that ignores ranges: it is not asked for one again in this run.
  private func noteRanges(of reply: SourceReply, asked: SourceRequest, _ plan: ResumePlan) {
    guard asked.range != nil, case .append = plan, case .whole = reply.coverage else { return }
    attempt.trust.lower(asked.url, to: .none)
    attempt.announce(
      .refused(
        DownloadError(.rangeIgnored, "the server sent the whole file instead of the rest").located(
          stage: nil, url: asked.url, attempt: asked.attempt)))
  }

  /// Opens the source through the interceptors, the first one outermost.
  private func open(_ request: SourceRequest, with source: any Source) async throws -> SourceReply {
    var next: RequestInterceptorNext = { try await source.open($0) }
    for interceptor in pipeline.interceptors.reversed() {
      let inner = next
      next = { try await interceptor.intercept($0, next: inner) }
    }
    return try await next(request)
  }

  /// Writes a checkpoint where a server serves a file in bodies too small for one on their way.
  private func checkpointBetweenBodies(_ partial: any Partial) async throws {
    let end = run.record.checkpoint.ranges.prefixLength
    let isDue = run.state.withLock { state in
      guard end - state.lastCheckpointBytes >= attempt.options.checkpoints.bytes else { return false }
      state.lastCheckpointBytes = end
      state.lastCheckpointAt = attempt.options.time.now
      return true
    }
    guard isDue else { return }
    try await attempt.located(attempt.storage.name) { try await flush(partial) }
    try await claim(end, in: partial)
  }

  /// Tells the ledger that the bytes before `offset` are on the disk, once they have been flushed.
  private func claim(_ offset: Int64, in partial: any Partial, adopting adoption: Adoption? = nil) async throws {
    run.state.withLock { $0.durableBytes = offset }
    run.update { record in
      record.checkpoint.ranges.insert(contentsOf: 0..<offset)
      adoption?.apply(to: &record.checkpoint)
    }
    markTail(of: partial)
    do {
      try await attempt.save([.checkpoint])
    } catch let error as DownloadError where error.code == .ledger {
      // A checkpoint missed is not a transfer lost; the next one may succeed.
      attempt.announce(.attemptFailed(error))
    }
  }

  // MARK: The plan

  private func carryOut(
    _ plan: ResumePlan, of reply: SourceReply, asked: SourceRequest, into partial: any Partial
  ) async throws -> Bool {
    let start: Int64
    let compareUntil: Int64
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
      // The ledger lets go of the old bytes before the first new one is written over them.
      if let reason { try await attempt.forgetBytes(because: reason) }
      if try partial.size() > 0 { try partial.truncate(to: 0) }
      start = 0
      compareUntil = 0
    }
    let adoption = Adoption(reply, to: asked, keeping: compareUntil, of: run.read({ $0.checkpoint }))
    run.update { record in
      record.resumedFrom = isWhole ? 0 : compareUntil
      if start == compareUntil { adoption.apply(to: &record.checkpoint) }
    }
    // An answer that does not say how long it is has to be as long as the file is known to be.
    let end = end(of: reply) ?? (compareUntil > 0 && isWhole ? run.read({ $0.checkpoint.total.bytes }) : nil)
    let maximum = run.read { $0.request.maximumSize }
    if let maximum, let end, end > maximum {
      throw DownloadError(.tooLarge, "the file has \(end) bytes, \(maximum) are allowed")
    }
    attempt.announce(run.read { .started(attempt: $0.attempts, from: $0.resumedFrom) })
    if let final = reply.finalURL, final != asked.url { attempt.announce(.redirected(to: final.redacted)) }

    let adopted = compareUntil == 0 ? try adoptFile(of: reply, into: partial) : nil
    let offset: Int64
    if let adopted {
      if let maximum, adopted > maximum {
        throw DownloadError(.tooLarge, "the file has \(adopted) bytes, \(maximum) are allowed")
      }
      if let end, adopted > end {
        throw DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
      }
      offset = adopted
      run.received.store(adopted, ordering: .relaxed)
    } else {
      offset = try await write(
        reply.body, from: start, compareUntil: compareUntil, end: end, into: partial, adopting: adoption)
    }
    if let end, offset < end {
      throw DownloadError(.lengthMismatch, "the body ended after \(offset) of \(end) bytes")
    }
    guard offset >= compareUntil else {
      throw isWhole
        ? DownloadError(.sizeChanged, "the file on the server has \(offset) bytes and cannot be the one on disk")
        : DownloadError(.lengthMismatch, "the body ended within the bytes that were to be compared")
    }
    return try settle(offset, resumedAt: compareUntil, isWhole: isWhole)
  }

  private func end(of reply: SourceReply) -> Int64? {
    if case .range(let range, _) = reply.coverage { range.upperBound } else { reply.length.bytes }
  }

  /// Takes over a file that the transport has finished, where storage and plan allow.
  private func adoptFile(of reply: SourceReply, into partial: any Partial) throws -> Int64? {
    guard let file = reply.body.file, try partial.adopt(file) else { return nil }
    return try partial.size()
  }

  /// Whether more has to be asked for, now that `offset` bytes are there.
  private func settle(_ offset: Int64, resumedAt start: Int64, isWhole: Bool) throws -> Bool {
    try run.update { record -> Result<Bool, DownloadError> in
      if offset > 0 { record.checkpoint.ranges.insert(contentsOf: 0..<offset) }
      switch record.checkpoint.total {
      case .known(let total) where offset < total:
        // A server that serves less than was asked for is asked again, as long as it brings something.
        if offset > start { return .success(true) }
        return .failure(DownloadError(.lengthMismatch, "the server stops at byte \(offset) of \(total)"))
      case .known:
        break
      case .unknown where !isWhole && offset > start:
        // A range of a file of unknown size may be less than the rest: only an answer without more ends it.
        return .success(true)
      case .unknown:
        record.checkpoint.total = .known(offset)
      }
      if let expected = record.request.expectedSize, expected != offset {
        return .failure(
          DownloadError(.lengthMismatch, "the file has \(offset) bytes, \(expected) were expected"))
      }
      return .success(false)
    }.get()
  }

  // MARK: Writing

  /// A body of so few bytes is not worth a checkpoint on its way: they are fetched again faster than that.
  private static let bytesWithoutCheckpoint: Int64 = 256 << 10

  private func write(
    _ body: Body, from start: Int64, compareUntil: Int64, end: Int64?, into partial: any Partial,
    adopting adoption: Adoption
  ) async throws -> Int64 {
    let writer = BodyWriter(
      partial: partial, of: attempt.storage, run: run, start: start, compareUntil: compareUntil, end: end,
      maximumSize: run.read { $0.request.maximumSize }, checkpointBytes: attempt.options.checkpoints.bytes)
    defer {
      // Whatever ended the body: what was written is there, and belongs to this representation.
      let offset = writer.offset
      if offset > 0, offset >= compareUntil {
        run.update { record in
          record.checkpoint.ranges.insert(contentsOf: 0..<offset)
          if start < compareUntil { adoption.apply(to: &record.checkpoint) }
        }
      }
    }
    if let end, end - start <= min(Self.bytesWithoutCheckpoint, attempt.options.checkpoints.bytes) {
      try await body.forEachChunk { try writer.take($0) }
      return writer.offset
    }
    let (requests, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    run.state.withLock { $0.checkpointRequest = continuation }
    defer {
      run.state.withLock { $0.checkpointRequest = nil }
      continuation.finish()
    }
    // A child task, ended and awaited when this scope is left: no checkpoint can overtake what follows.
    async let checkpoints: Void = writeCheckpoints(
      requests, writer: writer, partial: partial, from: compareUntil,
      adopting: start < compareUntil ? adoption : nil)
    try await body.forEachChunk { try writer.take($0) }
    continuation.finish()
    try await checkpoints
    return writer.offset
  }

  private func writeCheckpoints(
    _ requests: AsyncStream<Void>, writer: BodyWriter, partial: any Partial, from known: Int64,
    adopting adoption: Adoption?
  ) async throws {
    for await _ in requests {
      let offset = writer.offset
      guard offset > known else { continue }
      // Data first, then the ledger.
      do {
        try await attempt.located(attempt.storage.name) { try await flush(partial) }
      } catch {
        // No byte more for a disk that loses them.
        writer.abort(with: DownloadError(error, as: .storage))
        throw error
      }
      try await claim(offset, in: partial, adopting: adoption)
    }
  }

  /// Closes a broken transfer's partial, and lets go of the bytes that may not be on the disk.
  private func keepBytes(of partial: any Partial, isClosed: Bool) async {
    if !isClosed {
      if !run.state.withLock({ $0.flushHasFailed }) {
        do { try await flush(partial) } catch { run.state.withLock { $0.flushHasFailed = true } }
        markTail(of: partial)
      }
      do { try partial.close() } catch { run.state.withLock { $0.flushHasFailed = true } }
    }
    run.state.withLock { state in
      guard state.flushHasFailed else { return }
      state.record.checkpoint.cut(to: state.durableBytes)
      state.record.checkpoint.isComplete = false
    }
  }
}
