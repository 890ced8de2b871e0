public import DownpipeCore
import Synchronization

/// An admission policy that limits how often downloads start: for each host, or in total.
///
/// ```swift
/// RequestRate(2)                              // two starts per second from one host
/// RequestRate(100, per: .seconds(60), burst: 10)
/// RequestRate(20, scope: .all)                // twenty starts per second in total
/// ```
/// Each start of a run counts, so each further attempt does too. Redirects, and requests that the engine repeats within
/// a run, are not counted. Starts are spaced evenly; after a pause, up to `burst` downloads start at once. Downloads
/// that are started by hand start at once, and count.
///
/// The counts are kept in memory, and begin again when the policy is replaced.
public struct RequestRate: AdmissionPolicy, Hashable {
  /// The downloads that share a rate.
  public enum Scope: String, Sendable, Hashable {
    /// Downloads from the same host with its port.
    case host
    /// All downloads.
    case all
  }

  /// The most starts in ``interval``, at least 1.
  public let count: Int
  /// The interval that ``count`` refers to.
  public let interval: Duration
  /// The number of downloads that may start at once after a pause, at least 1.
  public let burst: Int
  /// The downloads that share the rate.
  public let scope: Scope
  /// The identifier among the admission policies of the pipeline.
  public let id: String

  /// Creates a rate.
  ///
  /// - Parameters:
  ///   - count: The most starts in an interval; a number below 1 counts as 1.
  ///   - interval: The interval; below a millisecond it counts as one.
  ///   - burst: The number of downloads that may start at once after a pause; a number below 1 counts as 1.
  ///   - scope: The downloads that share the rate.
  ///   - id: The identifier among the admission policies of the pipeline.
  public init(
    _ count: Int, per interval: Duration = .seconds(1), burst: Int = 1, scope: Scope = .host, id: String = "RequestRate"
  ) {
    self.count = max(1, count)
    self.interval = max(.milliseconds(1), interval)
    self.burst = max(1, burst)
    self.scope = scope
    self.id = id
  }

  /// The rate as text.
  public var summary: String {
    "\(count) in \(interval.inWords)" + (scope == .host ? " from one host" : "")
      + (burst > 1 ? ", \(burst) at once" : "")
  }

  /// Admits every download: the session decides, because the rate depends on when downloads have started.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }

  /// Returns a session that counts from now on.
  public func start() -> any AdmissionSession { Session(rate: self) }

  private final class Session: AdmissionSession {
    private let rate: RequestRate
    /// The instant at which the starts so far are paid for, by host (GCRA: the theoretical arrival time).
    private let paid = Mutex(RisingLevels<Duration>())

    init(rate: RequestRate) { self.rate = rate }

    private var spacing: Duration { rate.interval / rate.count }

    private func key(_ candidate: Candidate) -> String { rate.scope == .host ? candidate.host : "" }

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
      // URLs without a host, such as those of files, have no server to protect.
      if rate.scope == .host, candidate.host.isEmpty { return .admitted }
      guard let paid = paid.withLock({ $0[key(candidate)] }) else { return .admitted }
      let next = paid - spacing * (rate.burst - 1)
      if now >= next { return .admitted }
      let which = rate.scope == .host ? " from \(candidate.host)" : ""
      return .wait(
        "at most \(rate.count) downloads start in \(rate.interval.inWords)\(which)", until: next,
        scope: rate.scope == .host ? .host : .all)
    }

    func started(_ candidate: Candidate, at now: Duration) {
      let key = key(candidate)
      paid.withLock { paid in
        paid.set(max(paid[key] ?? now, now) + spacing, for: key, above: now)
      }
    }
  }
}
