internal import Foundation

/// How a run ended. The run returns its outcome; the engine applies it to the record.
enum Outcome: Sendable {
  /// The artifact is at its destination. Indirect, because a run has room for several outcomes while it waits.
  indirect case published(Artifact)
  /// The work failed, and the retry policy has decided.
  case failed(DownloadError, RetryDecision)
  /// The engine stopped it.
  case stopped(StopReason)
  /// Another owner holds the download, or it was removed.
  case notOwned

  /// Whether the run failed for lack of disk space, and the download waits for it.
  var isOutOfRoom: Bool {
    switch self {
    case .failed(_, .wait(for: .disk, _)): true
    case .failed(let error, .giveBack): error.code == .noSpace
    default: false
    }
  }

  /// The outcome as admission policies see it.
  var result: RunEnd.Result {
    switch self {
    case .published: .finished
    case .failed(_, .giveBack): .stopped
    case .failed(let error, _): .failed(error)
    case .stopped, .notOwned: .stopped
    }
  }

  /// Applies the outcome to a record.
  ///
  /// - Parameters:
  ///   - record: The record, in an active phase.
  ///   - stored: Returns the form of an artifact that the ledger stores.
  ///   - hasRefresher: Whether an expired link can be refreshed.
  ///   - now: The current date.
  /// - Returns: The state to publish.
  func apply(
    to record: inout DownloadRecord, stored: (Artifact) -> StoredArtifact, hasRefresher: Bool, now: Date
  ) -> DownloadState {
    switch self {
    case .published(let artifact):
      // The transfer is skipped if the file already exists.
      record.apply(.bytesComplete)
      record.apply(.stepsComplete)
      record.checkpoint.isComplete = true
      record.steps.artifact = stored(artifact)
      record.steps.note = nil
      return .finished(artifact)
    case .failed(let error, let decision):
      return fail(&record, error, decision, hasRefresher: hasRefresher, now: now)
    case .stopped(let reason):
      return Self.stop(&record, reason)
    case .notOwned:
      return .waiting(.elsewhere)
    }
  }

  private func fail(
    _ record: inout DownloadRecord, _ error: DownloadError, _ decision: RetryDecision, hasRefresher: Bool, now: Date
  ) -> DownloadState {
    var awaited: Awaited?
    var delay: Duration?
    switch decision {
    case .resume(let wait), .restart(let wait):
      delay = wait
    case .wait(let what, let wait):
      (awaited, delay) = (what, wait)
      // A missing resource is not the server's fault: it does not count as a failure.
      record.consecutiveFailures = record.consecutiveFailures > 0 ? record.consecutiveFailures - 1 : 0
    case .refresh(let wait) where hasRefresher:
      (awaited, delay) = (.link, wait)
    case .giveBack:
      return Self.giveBack(&record, error)
    case .refresh, .giveUp:
      break
    }
    record.error = error
    // A link that has not been refreshed is still expired.
    if record.awaited != .link { record.awaited = awaited }
    guard let delay else {
      record.apply(.failedForGood)
      return .failed(error)
    }
    record.apply(.failedForNow)
    // What lies much further ahead was set by a clock that has jumped, and would be due at once.
    let due = now.addingTimeInterval(min(max(.zero, delay), BackOff.longest) / .seconds(1))
    record.notBefore = due
    return .waiting(WaitingReason(record.awaited, until: due, after: error))
  }

  /// Lets the download wait as before the attempt.
  private static func giveBack(_ record: inout DownloadRecord, _ error: DownloadError) -> DownloadState {
    record.apply(.suspended)
    record.forgetAttempt()
    return .waiting(WaitingReason(machine: error))
  }

  private static func stop(_ record: inout DownloadRecord, _ reason: StopReason) -> DownloadState {
    let (state, event) = reason.meaning
    record.error = nil
    if record.awaited != .link { record.awaited = nil }
    record.apply(event)
    if reason == .restart { record.apply(.restart) }
    if reason == .changed { record.forgetAttempt() }
    return state
  }
}

extension DownloadRecord {
  /// Counts the attempt no longer that ends now: neither the server nor the download is the reason.
  fileprivate mutating func forgetAttempt() { attempts = max(0, attempts - 1) }
}

extension WaitingReason {
  /// Creates the reason of a download that waits for its next attempt.
  init(_ awaited: Awaited?, until due: Date, after error: DownloadError) {
    self = awaited.map { .missing($0, until: due, after: error) } ?? .retry(at: due, after: error)
  }
}
