internal import Foundation
internal import Synchronization

// A single request and its reply.
extension Transfer {
  /// Sends one request and writes the reply's body.
  /// - Parameter hasRange: Set if the request is for a range.
  /// - Returns: Whether another request is needed because the server sent fewer bytes than are missing.
  func transferOnce(
    from url: URL, trusting trust: RangeTrust, into partial: any Partial, hasRange: inout Bool
  ) async throws -> Bool {
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
      let (expectedSize, hasDigest) = (run.read { $0.request.expectedSize.bytes }, run.verifiesDigest)
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
      hasRange = ask.range != nil
      let asked: Date
      var reply: SourceReply
      if let opened = opened?.take() {
        (ask, asked, reply) = opened
      } else {
        // Small files have arrived before a limit of the rate can hold them up: the next ones wait for it.
        try await ask.pace.keep(after: 0)
        asked = run.context.time.date
        reply = try await open(ask, in: session)
        announceRedirects(of: reply, asked: url)
        reply = reply.asRead(to: ask, total: checkpoint.total)
      }
      do {
        if isAsking {
          switch try judge(reply, to: ask, asked: asked) {
          case .unchanged: return false
          case .askAgain: return true
          case .plan: break
          }
        }
        let decided = ResumePlan.decide(
          checkpoint: checkpoint, request: ask, reply: reply, validation: validation,
          // The expected size is that of the decoded file.
          expectedSize: expectedSize != nil && run.decodes(reply, to: ask) ? nil : expectedSize,
          hasDigest: hasDigest, isPermitted: !isAsking && run.read { $0.versions.mayChange },
          canRefresh: run.canRefresh(url))
        #if SABOTAGE
          let plan = decided.restarting(run.context.options.sabotage == .restartsAlways)
        #else
          let plan = decided
        #endif
        run.context.options.probe?.note(.planned(run.id, plan))
        noteRanges(of: reply, asked: ask, plan)
        if isAsking, case .begin = plan { try await fetchAnew() }
        return try await carryOut(plan, of: reply, asked: ask, at: asked, trusting: trust, into: partial)
      } catch let version as AnotherVersion {
        throw version
      } catch {
        if !keepsFile(of: reply, after: error, received: have) { reply.body.discard() }
        throw error
      }
    } catch let version as AnotherVersion {
      throw version
    } catch let judged as JudgedFailure {
      throw judged.located(stage: source.name, url: url, attempt: attempt)
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
      url: url, downloadURL: request.url, id: run.id, range: range, validator: validator,
      headers: isNamedByServer ? request.headers.forEverybody : request.headers(for: url), metadata: request.metadata,
      attempt: attempt, hasFreshLink: run.state.withLock { $0.freshLink != nil },
      isNamedByServer: isNamedByServer, pace: TransferPace(time: run.context.time, limits: RunPace(run).pause),
      lease: run.requestLease)
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
    case .gate, .limit, .preempted, .pause, .pauseAll, .shutdown, .suspend, .leaseEnds: error is CancellationError
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
  ///
  /// Nothing is opened after the end of the lease, as when the process was stopped before: another owner's request counts for
  /// the limits by then.
  func open(_ request: SourceRequest, in session: any SourceSession) async throws -> SourceReply {
    try run.checkLease()
    if run.pipeline.interceptors.isEmpty { return try await session.open(request).checked() }
    return try await openIntercepted(request, in: session)
  }

  @inline(never)  // The frame is larger than that of an opening without interceptors, and waits for the server.
  private func openIntercepted(_ request: SourceRequest, in session: any SourceSession) async throws -> SourceReply {
    try await run.opening(session)(request).checked()
  }
}

#if SABOTAGE
  extension ResumePlan {
    fileprivate func restarting(_ isSabotage: Bool) -> ResumePlan {
      guard isSabotage, case .append = self else { return self }
      return .replace(because: DownloadError(.contentChanged, "sabotage"))
    }
  }
#endif
