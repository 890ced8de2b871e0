internal import Foundation
internal import Synchronization

// What a source knows only at the end of a body.
extension Transfer {
  /// Takes over the digests of a trailer, and checks an end that the source cannot confirm.
  ///
  /// Called before the size of the file is recorded: until then a process that ends here leaves an incomplete file, which
  /// the next one goes on with.
  func checkEnd(
    _ end: Body.End, of asked: SourceRequest, within bounds: BodyBounds, at offset: Int64, of partial: any Partial
  ) async throws {
    if !end.digests.isEmpty { run.update { $0.checkpoint.add(end.digests) } }
    guard end.isUnconfirmed else { return }
    try bounds.checkEnd(at: offset)
    switch decision(on: bounds, endedAt: offset) {
    case .proved: return
    case .publish: noteUnconfirmed("is too large to be fetched once more", asked, offset)
    case .compare: try await fetchAgain(asked, upTo: offset, of: partial)
    }
  }

  private func decision(on bounds: BodyBounds, endedAt offset: Int64) -> UnconfirmedEnd {
    let steps = run.pipeline.steps
    return run.read { record in
      let (checkpoint, request) = (record.checkpoint, record.request)
      let hasDigest = request.expectsDigest || checkpoint.digests.contains(where: \.algorithm.isStrong)
      // The expected size may be that of the decoded file: the decoder proves the end then, or the check of its output.
      return UnconfirmedEnd.decide(
        size: bounds.end ?? checkpoint.total.bytes ?? request.expectedSize.bytes,
        hasDigest: hasDigest && request.steps.verifiesDigests(of: steps), endedAt: offset)
    }
  }

  private func noteUnconfirmed(_ why: String, _ asked: SourceRequest, _ offset: Int64) {
    note(
      .unconfirmedEnd,
      "the server closed the connection after \(offset) bytes without the alert of TLS that excludes a cut, and the file "
        + "\(why): it may be incomplete", asked)
  }

  private func note(_ code: DownloadError.Code, _ message: String, _ asked: SourceRequest) {
    run.announce(
      .refused(DownloadError(code, message).located(stage: nil, url: asked.url, attempt: asked.attempt)))
  }

  // MARK: The second fetch

  /// Fetches the file once more and compares it with the bytes on disk. Nothing of it is stored.
  ///
  /// - Throws: `.lengthMismatch` if the files differ: one of them was cut off.
  @inline(never)  // The frame is needed for such ends only.
  private func fetchAgain(_ asked: SourceRequest, upTo offset: Int64, of partial: any Partial) async throws {
    guard let (_, session) = run.stages.source(for: asked.url) else { return }
    let ask = request(nil, nil, for: asked.url, isNamedByServer: asked.isNamedByServer)
    try await ask.pace.keep(after: 0)
    let reply = try await open(ask, in: session)
    // A link may be good for one request.
    guard reply.coverage == .whole, reply.contentCoding == run.read({ $0.checkpoint.contentCoding }) else {
      reply.body.discard()
      return noteUnconfirmed("cannot be fetched once more", asked, offset)
    }
    run.watchSpeed()
    defer { run.state.withLock { $0.watch = nil } }
    let position = Atomic<Int64>(0)
    do {
      try await reply.body.forEachChunk { chunk in
        let start = position.load(ordering: .relaxed)
        let count = Int64(chunk.byteCount)
        run.fetched.wrappingAdd(count, ordering: .relaxed)
        guard count <= offset - start else {
          throw DownloadError(
            .lengthMismatch,
            "the body was cut off after \(offset) bytes: a second one has more, and neither has a length")
        }
        if let equal = chunk.firstDifference(from: try partial.read(at: start, count: chunk.byteCount)) {
          throw DownloadError(
            .lengthMismatch,
            "the body may have been cut off after \(offset) bytes: a second one differs at byte \(start + Int64(equal))"
          )
        }
        position.store(start + count, ordering: .releasing)
      }
    } catch {
      reply.body.discard()
      throw error
    }
    let end = position.load(ordering: .acquiring)
    guard end == offset else {
      throw DownloadError(
        .lengthMismatch,
        "the body may have been cut off after \(offset) bytes: a second one ended after \(end), and neither has a length"
      )
    }
    note(
      .comparedEnd,
      "the server closed the connection after \(offset) bytes without the alert of TLS that excludes a cut: a second "
        + "fetch has brought the same bytes", asked)
  }
}

extension BodyWriter {
  /// Notes what the source knows at the end of the body.
  func noteEnd(_ end: Body.End) {
    if end != Body.End() { bodyEnd.withLock { $0 = end } }
  }
}

extension Checkpoint {
  /// Adds digests that came after a body, unless they are known.
  mutating func add(_ more: [FileDigest]) {
    for digest in more where !digests.contains(digest) { digests.append(digest) }
  }
}
