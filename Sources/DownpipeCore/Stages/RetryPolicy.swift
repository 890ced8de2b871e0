public import Foundation

/// A policy that decides what to do about a failure. It never waits or acts.
public protocol RetryPolicy: Stage {
  /// Returns what to do about a failure.
  ///
  /// The function must be pure: it takes chance from `failure.random`. A delay is limited to 0 … 365 days.
  func decide(_ failure: Failure) -> RetryDecision
}

extension RetryPolicy {
  /// Becomes the pipeline's retry policy.
  public func contribute(to parts: inout PipelineParts) { parts.retryPolicies.append(self) }
}

/// A failed attempt, as a retry policy sees it.
public struct Failure: Sendable {
  /// The request of the download; `nil` only in tests that leave it out.
  public var request: DownloadRequest?
  /// The error that ended the attempt.
  public var error: DownloadError
  /// The number of failed attempts in a row without a byte of progress, including this one; at least 1. Progress resets
  /// it. An attempt that has noticed that the file on the server has changed is not counted, unless the one before it
  /// had noticed the same.
  public var consecutive: Int
  /// The number of failed attempts in a row with the same error code, and for `.httpStatus` the same status, including
  /// this one.
  public var repeated: Int
  /// The number of all attempts so far; see ``DownloadStatus/attempts``.
  public var attempts: Int
  /// A random number in 0..<1, drawn by the engine, for jitter.
  public var random: Double
  /// The current date, for `Retry-After` dates.
  public var now: Date

  /// Creates a description of a failed attempt. When `repeated` is `nil`, it equals `consecutive`.
  public init(
    error: DownloadError, consecutive: Int = 1, repeated: Int? = nil, attempts: Int = 1, random: Double = 0.5,
    now: Date = Date(timeIntervalSince1970: 0), request: DownloadRequest? = nil
  ) {
    self.request = request
    self.error = error
    self.consecutive = consecutive
    self.repeated = repeated ?? consecutive
    self.attempts = attempts
    self.random = random
    self.now = now
  }
}

/// What to do about a failure.
public enum RetryDecision: Sendable, Hashable {
  /// Continue from the stored bytes after the delay.
  case resume(after: Duration)
  /// Discard the stored bytes and start again after the delay.
  case restart(after: Duration)
  /// Continue once the missing resource is available: a gate has opened, or there is space on the disk. After the
  /// interval the download is tried in any case. Waiting uses up no attempts.
  case wait(for: Awaited, atMost: Duration)
  /// Renew the link with the pipeline's ``LinkRefresher``, then continue from the stored bytes after the delay. In a
  /// pipeline without a link refresher this is the same as ``giveUp``.
  case refresh(after: Duration)
  /// Let the download wait as it was before the attempt, which does not count: the fault is this machine's (see
  /// ``DownloadError/Scope/machine``). Another machine of the ledger may take it at once. This downloader starts nothing for 5
  /// s, then one download as a trial; the pause doubles with each trial that fails, up to 5 min.
  case giveBack
  /// Fail the download. The stored bytes are kept.
  case giveUp
}
