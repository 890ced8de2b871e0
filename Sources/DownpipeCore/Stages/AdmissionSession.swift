/// A started admission policy, which may learn from the downloads that it admitted.
///
/// ```swift
/// import Synchronization
///
/// final class OneEverySecond: AdmissionSession {
///   private let next = Mutex<Duration>(.zero)
///
///   func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
///     let next = next.withLock { $0 }
///     return now >= next ? .admitted : .wait("one start in a second", until: next, scope: .all)
///   }
///   func started(_ candidate: Candidate, at now: Duration) { next.withLock { $0 = now + .seconds(1) } }
/// }
/// ```
/// All instants are values of ``TimeSource/now``. The calls may come from several threads at once: the ledger selects
/// downloads while the engine explains why others wait. They must be cheap: leases are transactions of the ledger.
public protocol AdmissionSession: Sendable {
  /// Returns whether `candidate` may start beside the downloads that run. See ``AdmissionPolicy/admit(_:beside:)``.
  ///
  /// The engine also asks in order to explain why a download waits, so the call must not count as a start.
  func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission

  /// Records that a download starts: after every policy has admitted it, or because it was started by hand.
  func started(_ candidate: Candidate, at now: Duration)

  /// Records that a run has ended. The candidate's size is what was known last, so it may differ from that of the
  /// start.
  func ended(_ candidate: Candidate, _ end: RunEnd)

  /// The order of groups of candidates, such as hosts that start in turn; `nil`, the default, if the rank alone decides.
  ///
  /// It is read once for each lease and must not change. Of several policies with an order, the first one of the
  /// pipeline decides.
  var order: CandidateOrder? { get }
}

extension AdmissionSession {
  /// The default: nothing to record.
  public func started(_ candidate: Candidate, at now: Duration) {}
  /// The default: nothing to record.
  public func ended(_ candidate: Candidate, _ end: RunEnd) {}
  /// The default: `nil`, the rank alone decides.
  public var order: CandidateOrder? { nil }
}

/// The end of a run, as admission sessions see it.
public struct RunEnd: Sendable, Hashable {
  /// The result of a run.
  public enum Result: Sendable, Hashable {
    /// The download has finished.
    case finished
    /// The run failed; the download may be tried again.
    case failed(DownloadError)
    /// The run was stopped: paused, preempted, cancelled, or held back by a gate.
    case stopped
  }

  /// The result of the run.
  public let result: Result
  /// When the run started.
  public let startedAt: Duration
  /// When the run ended.
  public let endedAt: Duration

  /// Creates a description of an end.
  public init(_ result: Result, startedAt: Duration, endedAt: Duration) {
    self.result = result
    self.startedAt = startedAt
    self.endedAt = endedAt
  }
}

/// The session of a policy without state.
struct StatelessAdmission<Policy: AdmissionPolicy>: AdmissionSession {
  let policy: Policy

  func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
    policy.admit(candidate, beside: running)
  }
}
