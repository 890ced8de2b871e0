internal import Foundation
internal import Synchronization

// Wrong pieces, fetched again one by one.
extension Transfer {
  /// Whether only the missing ranges of the file are to be fetched: pieces were found wrong, or an earlier run has begun to
  /// fetch wrong pieces and the usual way, which compares bytes of one strong validator, would give up those behind them.
  var isRepair: Bool {
    if let repair = run.findings.withLock({ $0.repair }) { return repair == .pieces }
    return run.read { record in
      let checkpoint = record.checkpoint
      return record.request.pieces != nil && !record.isAsking && checkpoint.total != .unknown
        && checkpoint.contentCoding == nil && checkpoint.ranges.end > checkpoint.ranges.prefixLength
        && checkpoint.validator?.isStrong != true
        && record.request.steps.verifiesDigests(of: run.pipeline.steps)
    }
  }

  /// Fetches the missing ranges of the file, each by a request for exactly its bytes.
  ///
  /// Nothing is compared with the bytes beside them, as a resume does it: the digests of the pieces prove them. Each place
  /// is asked until one has sent all ranges. If none sends ranges, the file is completed as any other one.
  @inline(never)  // The frame is needed for repairs only.
  func repair(_ partial: any Partial) async throws {
    run.findings.withLock { $0.repair = nil }
    while true {
      do {
        return try await fillGapsFromAny(into: partial)
      } catch let error as DownloadError where error.code == .noSpace && run.stopReason == nil && !book.hasLostBytes {
        // A step can write when the file is complete: the repair needs the space first.
        guard await following.givesRoom() else { throw error }
        run.findings.withLock { _ = $0.places.askedForPieces.popLast() }
      }
    }
  }

  private func fillGapsFromAny(into partial: any Partial) async throws {
    var failure: DownloadError?
    // One after the other.
    run.connections.store(1, ordering: .relaxed)
    defer { run.connections.store(0, ordering: .relaxed) }
    while let (place, url) = nextForPieces {
      run.findings.withLock { findings in
        findings.places.askedForPieces.append(url)
        findings.places.current = place
      }
      do {
        if try await fillGaps(from: url, into: partial) { return }
      } catch let error as DownloadError where run.stopReason == nil && isFault(error, ofSourceAt: url) {
        failure = failure ?? error
        if nextForPieces != nil { run.announce(.attemptFailed(error)) }
      }
    }
    // The right pieces behind a gap are worth another attempt, unless a place sends the whole file.
    if let failure, run.findings.withLock({ $0.places.wholeOnly.isEmpty }) { throw failure }
    run.use(run.places.firstOfAll)
  }

  private var nextForPieces: (place: Int, url: URL)? {
    let places = run.places
    return places.nextForPieces.map { ($0, places.urls[$0]) }
  }

  /// The most bytes of one request: servers may send less than what is asked for.
  private static let mostAtOnce: Int64 = 64 << 20

  /// - Returns: `false` if the server does not send such a range of a file of this size.
  private func fillGaps(from url: URL, into partial: any Partial) async throws -> Bool {
    let (checkpoint, attempt) = run.read { ($0.checkpoint, $0.attempts) }
    guard case .known(let total) = checkpoint.total, checkpoint.contentCoding == nil,
      let (source, session) = run.stages.source(for: url)
    else { return false }
    let connection = try await openConnection(to: url)
    defer { if let connection { run.context.connections.close(connection) } }
    do {
      for gap in ByteRangeSet(0..<total).subtracting(checkpoint.ranges).ranges {
        for start in stride(from: gap.lowerBound, to: gap.upperBound, by: Int64.Stride(Self.mostAtOnce)) {
          let part = start..<min(start + Self.mostAtOnce, gap.upperBound)
          guard try await fill(part, of: total, from: url, in: session, into: partial) else { return false }
          try await book.commitBetweenBodies(partial)
        }
      }
      return true
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: .network, stage: source.name).located(
        stage: source.name, url: url, attempt: attempt)
    }
  }

  private func fill(
    _ gap: ByteRange, of total: Int64, from url: URL, in session: any SourceSession, into partial: any Partial
  ) async throws -> Bool {
    let ask = request(RequestedRange(from: gap.lowerBound, to: gap.upperBound), nil, for: url)
    try await ask.pace.keep(after: 0)
    let reply = try await open(ask, in: session)
    announceRedirects(of: reply, asked: url)
    guard reply.coverage == .range(gap, total: .known(total)), ContentCoding(reply.contentCoding) == nil else {
      reply.body.discard()
      if reply.coverage == .whole { run.findings.withLock { $0.places.wholeOnly.insert(url, at: 0) } }
      return false
    }
    run.announce(.started(attempt: ask.attempt, from: gap.lowerBound))
    let bounds = BodyBounds(
      of: reply, from: gap.lowerBound, comparing: gap.lowerBound, knownTotal: total, maximum: nil)
    let writer = BodyWriter(
      partial: partial, run: run, book: book, bounds, keeping: run.read { $0.checkpoint.ranges })
    do {
      try bounds.checkEnd(at: try await write(reply.body, of: url, with: writer, into: partial, adopting: nil))
    } catch {
      reply.body.discard()
      throw error
    }
    return true
  }
}
