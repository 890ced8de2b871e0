internal import Foundation
internal import Synchronization

/// A failure on which the retry policy has decided.
///
/// It is thrown instead of the error where the decision was needed before the run ended, so that the policy is not asked
/// again, with another random number. What ends the run applies the decision, unless the counts have changed since: then
/// the policy is asked again.
struct JudgedFailure: Error {
  /// The error, as it was thrown.
  private(set) var error: DownloadError
  /// What the policy was told.
  let failure: Failure
  let decision: RetryDecision

  /// Adds the place to the error, as far as it has none.
  func located(stage: String?, url: URL?, attempt: Int?) -> JudgedFailure {
    var judged = self
    judged.error = DownloadError(error, as: error.code, stage: stage).located(stage: stage, url: url, attempt: attempt)
    return judged
  }

  /// Whether the counts of a failure are those on which the policy has decided.
  func holds(for other: Failure) -> Bool {
    failure.consecutive == other.consecutive && failure.repeated == other.repeated && failure.attempts == other.attempts
  }

  /// Whether the same place would not be tried again.
  ///
  /// - Parameters:
  ///   - hasBytes: Whether there is a partial, which is worth waiting for the network. Without one another place may be
  ///     reachable.
  ///   - canRefresh: Whether the link of the place can be refreshed.
  func isFinal(hasBytes: Bool, canRefresh: Bool) -> Bool {
    switch decision {
    case .giveUp: true
    case .refresh: !canRefresh
    case .wait(for: .network, _): !hasBytes
    case .resume, .restart, .wait, .giveBack: false
    }
  }
}

// The one place where the retry policy is asked.
extension Run {
  /// Failures after which the file is downloaded again from the first byte, so that the bytes do not count as progress.
  private static let startsAgain: Set<DownloadError.Code> = [.digestMismatch, .damaged]

  /// Asks the retry policy about an error, as if it ended this run. Never called on a transport's thread: a policy is the
  /// user's code.
  func judge(_ error: DownloadError) -> JudgedFailure { judge(error, random: context.options.random()) }

  private func judge(_ error: DownloadError, random: Double) -> JudgedFailure {
    var error = error
    if error.scope == .host, let host = read({ $0.request.url.host }), context.hostFaults.note(host) {
      error.scope = .machine
    }
    // All who could take it have the same disk: it waits for space, and those that fit go on.
    if error.code == .noSpace, !context.store.leasesExpire { error.scope = .download }
    let failure = failure(error, random: random)
    return JudgedFailure(error: error, failure: failure, decision: context.policies.retry.decide(failure))
  }

  private func failure(_ error: DownloadError, random: Double) -> Failure {
    let error = naming(error).located(stage: nil, url: read { $0.request.url }, attempt: read { $0.attempts })
    let bytes = read { $0.partialRanges.byteCount }
    let progressed =
      bytes > context.furthest.before(id, atLeast: bytesAtStart) && !Self.startsAgain.contains(error.code)
    return read { record in
      let repeated = record.error?.isOfSameKind(as: error) == true && !progressed ? record.repeatedFailures.next : 1
      let consecutive = progressed ? 1 : record.consecutiveFailures.next
      return Failure(
        error: error, consecutive: consecutive, repeated: repeated,
        attempts: record.attempts, random: random, now: context.time.date, request: record.request)
    }
  }

  /// Ends the run with a failure.
  func fail(_ judged: JudgedFailure) async -> Outcome {
    var decision = judged.decision
    let failure = failure(judged.error, random: judged.failure.random)
    // After the decision another place may have brought bytes, or the disk may have lost some: the attempts count anew.
    if !judged.holds(for: failure) { decision = judge(judged.error, random: judged.failure.random).decision }
    let error = failure.error
    announce(.attemptFailed(error))
    context.furthest.note(id, read { $0.partialRanges.byteCount })
    if error.httpStatus != nil { context.hostFaults.reached() }
    // The attempt does not count.
    if case .giveBack = decision { return .failed(error, decision) }
    update { record in
      record.consecutiveFailures = failure.consecutive
      record.repeatedFailures = failure.repeated
    }
    let isWrong = Self.provesWrongBytes.contains(error.code)
    // Also if an earlier run has got bytes of mirrors.
    if isWrong { context.doubtedMirrors.insert(id) }
    forgetExclusions(after: error, decision)
    switch decision {
    case .restart:
      await dropBytes()
    // These bytes are proved wrong: if they were kept, every resume by hand would fail again.
    case .giveUp where Self.startsAgain.contains(error.code) || findings.withLock({ $0.dropsBytes }),
      .refresh where isWrong:
      await dropBytes()
    case .giveUp, .giveBack, .refresh, .resume, .wait:
      break
    }
    return .failed(error, decision)
  }
}

extension DownloadError {
  /// Whether two failures are of the same kind, as the rows of a failure table are.
  func isOfSameKind(as other: DownloadError) -> Bool {
    code == other.code && (code != .httpStatus || httpStatus == other.httpStatus)
  }
}

extension Int {
  /// One more, of a count that a ledger has kept: it may be any number there.
  var next: Int { self < 0 ? 1 : self == .max ? .max : self + 1 }
}
