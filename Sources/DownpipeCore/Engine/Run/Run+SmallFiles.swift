internal import Foundation
internal import Synchronization

// Small files that a step needs beside the download: its checksums, its signature.
extension Run {
  /// The longest time for a small file. The source ends a response that falls silent.
  private static let longestFetch = Duration.seconds(600)

  /// Fetches a small file for a step, or takes the copy of another download; see
  /// ``ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)``.
  func fetch(_ url: URL, _ maximum: Int, isNamedByUser: Bool) async throws -> [UInt8] {
    // The step may have kept its context. Nothing is fetched for a run that has ended.
    guard stopReason == nil, !isOver else { throw CancellationError() }
    guard let (source, session) = stages.source(for: url) else {
      throw DownloadError(.unsupportedURL, "no source of this pipeline accepts “\(url.scheme ?? "")” URLs")
        .located(stage: nil, url: url, attempt: nil)
    }
    let latest = context.companions.lastNumber
    let asked = Fetched(step: state.withLock { $0.step }, url: url)
    let earlier = findings.withLock { $0.fetched.updateValue(latest, forKey: asked) }
    let shared = CompanionSession(run: self, base: session, url: url, maximum: maximum, number: earlier)
    do {
      return try await fetch(url, maximum, isNamedByUser: isNamedByUser, in: shared)
    } catch let error where !(error is CancellationError) {
      var error = DownloadError(error, as: .network, stage: source.name)
      // It is not the download's link, which would be refreshed.
      if error.code == .linkExpired { error.code = .httpStatus }
      throw error.located(stage: source.name, url: url, attempt: read { $0.attempts })
    }
  }

  /// A file that a step of the run has asked for.
  struct Fetched: Hashable, Sendable {
    let step: String?
    let url: URL
  }

  private func fetch(
    _ url: URL, _ maximum: Int, isNamedByUser: Bool, in session: any SourceSession
  ) async throws -> [UInt8] {
    let (request, attempt) = (request, read { $0.attempts })
    let origin = Origin(url)
    // Another place that the user has not named gets no credentials, like the duplicates that a server names. The origin
    // of the download gets them, as after a redirect of its own, unless a server has named that one, too.
    let isOwn = !request.isNamedByServer && origin != nil && origin == Origin(request.url)
    let isKnown = isNamedByUser || isOwn
    let ask = SourceRequest(
      url: url, downloadURL: request.url, id: id,
      headers: isKnown ? request.headers(for: url) : request.headers.forEverybody,
      metadata: request.metadata, attempt: attempt, isNamedByServer: !isKnown,
      pace: TransferPace(time: context.time, limits: RunPace(self).pause), lease: requestLease)
    let reply = try await opening(session)(ask)
    do {
      return try await bytes(of: reply, atMost: maximum).bytes
    } catch {
      reply.body.discard()
      throw error
    }
  }

  /// Sends a request of a step, and reads the whole file. A reply that is not the whole file is returned without its body.
  fileprivate func receive(
    _ request: SourceRequest, atMost maximum: Int, from session: any SourceSession
  ) async throws -> SourceReply {
    let connection =
      pipeline.segments == nil
      ? nil : try await context.connections.open(request.url.hostKey, mayExceed: exceedsLimits)
    defer { if let connection { context.connections.close(connection) } }
    try checkLease()
    var reply = try await session.open(request)
    guard (try? Self.checkWhole(reply)) != nil else {
      reply.body.discard()
      reply.body = .empty
      return reply
    }
    do {
      let (bytes, end) = try await bytes(of: reply, atMost: maximum)
      (reply.length, reply.body) = (.known(Int64(bytes.count)), .bytes(bytes))
      // It may have been cut off: the next download asks again.
      if end.isUnconfirmed { (reply.validator, reply.freshFor) = (nil, .zero) }
      return reply
    } catch {
      reply.body.discard()
      throw error
    }
  }

  private func bytes(of reply: SourceReply, atMost maximum: Int) async throws -> (bytes: [UInt8], end: Body.End) {
    try Self.checkWhole(reply)
    let tooLarge = DownloadError(.tooLarge, "the file has more than the \(maximum) bytes that a step may fetch")
    let announced = reply.length.bytes
    if let announced, announced > maximum { throw tooLarge }
    let (time, end) = (context.time, context.time.now + Self.longestFetch)
    let bytes = Mutex<[UInt8]>([])
    let ending = try await reply.body.forEachChunk { chunk in
      guard time.now < end else {
        throw DownloadError(.timedOut, "the file did not arrive within \(Self.longestFetch.inSeconds)")
      }
      try bytes.withLock { bytes in
        guard chunk.byteCount <= maximum - bytes.count else { throw tooLarge }
        chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
      }
    }
    try Task.checkCancellation()
    let received = bytes.withLock { $0 }
    guard announced.map({ $0 == received.count }) ?? true else {
      throw DownloadError(
        .lengthMismatch, "the server announced \(announced ?? 0) bytes, but sent \(received.count)")
    }
    return (received, ending)
  }

  /// Checks that a reply is a whole file without a content coding, as it was requested.
  private static func checkWhole(_ reply: SourceReply) throws(DownloadError) {
    switch reply.coverage {
    case .whole: break
    case .none(.status(let status)):
      throw DownloadError(
        .httpStatus, "the server replied with status \(status)", httpStatus: status, retryAfter: reply.retryAfter)
    case .none, .range, .multipart, .unreadable:
      throw DownloadError(.invalidResponse, "the server did not send the whole file, which was requested")
    }
    if ContentCoding(reply.contentCoding) != nil {
      throw DownloadError(
        .wrongContentCoding,
        "the server sent a small file in the content coding “\(reply.contentCoding?.prefix(64).escaped ?? "")”, although it "
          + "was requested without one")
    }
  }

  /// Opens requests through the interceptors; the first one is the outermost.
  func opening(_ session: any SourceSession) -> RequestInterceptorNext {
    var next: RequestInterceptorNext = { try await session.open($0) }
    for interceptor in pipeline.interceptors.reversed() {
      let inner = next
      next = { given in
        try await interceptor.intercept(given) { try await inner($0.confined(to: given)) }
      }
    }
    return next
  }
}

/// What interceptors open when a step fetches a small file: a copy that downloads share, or the source.
///
/// It is behind the interceptors, so that only downloads whose requests are the same when they reach the source share a
/// reply.
private struct CompanionSession: SourceSession {
  let run: Run
  let base: any SourceSession
  /// The URL that the step asks for.
  let url: URL
  let maximum: Int
  /// Copies of this request and of those before it are not used; `nil` if any may be.
  let number: UInt64?

  func open(_ request: SourceRequest) async throws -> SourceReply {
    let key = CompanionCache.Key(
      request, for: url, by: Origin(run.request.url), atMost: maximum, sourcesVersion: run.stages.sourcesVersion)
    return try await run.context.companions.reply(for: key, after: number, time: run.context.time) { stale in
      var request = request
      if let stale { (request.condition, request.conditionSize) = (stale.validator, stale.length.bytes) }
      return try await run.receive(request, atMost: maximum, from: base)
    }
  }
}

extension Run.State {
  /// The name of the step that is running; `nil` if none is.
  fileprivate var step: String? {
    if case .processing(let step) = publicState { step } else { nil }
  }
}
