public import Foundation

/// Says what a failure means. It only decides; it never waits or acts.
public protocol RetryPolicy: Stage {
  /// What to do about a failure. Pure: chance comes from `failure.random`. A delay is not negative, and not longer than
  /// a year.
  func decide(_ failure: Failure) -> RetryDecision
}

extension RetryPolicy {
  /// Becomes the pipeline's retry policy.
  public func contribute(to parts: inout PipelineParts) { parts.retryPolicies.append(self) }
}

/// A failed attempt, as a retry policy sees it.
public struct Failure: Sendable {
  /// The download, with its labels and metadata; `nil` only where a test leaves it out.
  public var request: DownloadRequest?
  /// What went wrong.
  public var error: DownloadError
  /// Attempts that failed in a row without a byte of progress, this one included: 1 at first.
  /// Progress gives the attempts back.
  public var consecutive: Int
  /// Attempts that failed in a row with this error's code and, of `.httpStatus`, with this status; this one included.
  public var repeated: Int
  /// All attempts so far.
  public var attempts: Int
  /// A number from 0 up to 1, drawn by the engine, for jitter.
  public var random: Double
  /// The calendar's time, for `Retry-After` dates.
  public var now: Date

  /// Describes a failure; `repeated` is the same as `consecutive` unless given.
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
  /// Go on from the bytes on disk after a while.
  case resume(after: Duration)
  /// Throw the bytes away and begin again after a while.
  case restart(after: Duration)
  /// Go on once there is what is missing: a gate has opened, room has been made. After the interval it is tried in any
  /// case. Waiting uses up no attempts.
  case wait(for: Awaited, atMost: Duration)
  /// Have the link renewed by the pipeline's ``LinkRefresher``, then go on from the bytes on disk after a while.
  /// In a pipeline without one, the same as giving up.
  case refresh(after: Duration)
  /// Report the failure; the bytes are kept.
  case giveUp
}
