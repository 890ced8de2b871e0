public import DownpipeCore
import Synchronization

/// An admission policy that finds out how many downloads each host can serve at once.
///
/// ```swift
/// Adaptive()                       // 2 at first, 1 to 8
/// Adaptive(initial: 4, maximum: 32)
/// ```
/// Each host begins with `initial` downloads. Each finished download raises the host's limit a little, by one after as
/// many successes as the limit (additive increase). The statuses 429 and 503 and exceeded time limits halve it
/// (multiplicative decrease); failures of downloads that started before the last decrease do not count again. A lower
/// limit does not stop running downloads: fewer start.
///
/// The policy limits each host only; add ``Limits`` for a total. What it has learned is kept in memory, for the
/// 4,096 hosts used last, and is lost when the policy is replaced.
public struct Adaptive: AdmissionPolicy, Hashable {
  /// The limit of a host before anything is known about it.
  public let initial: Int
  /// The lowest limit.
  public let minimum: Int
  /// The highest limit.
  public let maximum: Int
  /// The identifier among the admission policies of the pipeline.
  public let id: String

  /// Creates an adaptive limit.
  ///
  /// - Parameters:
  ///   - initial: The limit of a host before anything is known about it; moved into the range of the other two.
  ///   - minimum: The lowest limit, at least 1.
  ///   - maximum: The highest limit, at least `minimum`.
  ///   - id: The identifier among the admission policies of the pipeline.
  public init(initial: Int = 2, minimum: Int = 1, maximum: Int = 8, id: String = "Adaptive") {
    self.minimum = max(1, minimum)
    self.maximum = max(self.minimum, maximum)
    self.initial = min(max(self.minimum, initial), self.maximum)
    self.id = id
  }

  /// The limits as text.
  public var summary: String { "\(minimum) to \(maximum) from one host" }

  /// The highest limit for one host.
  public var maximumPerHost: Int? { maximum }

  /// Admits every download: the session decides, because the limit depends on how earlier runs have ended.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }

  /// Returns a session that knows nothing about any host.
  public func start() -> any AdmissionSession { Session(policy: self) }

  private final class Session: AdmissionSession {
    private struct Host {
      var limit: Double
      var lastDecrease: Duration?
      var lastUse: Duration
    }

    private let policy: Adaptive
    private let hosts = Mutex<[String: Host]>([:])
    private static let mostHosts = 4_096

    init(policy: Adaptive) { self.policy = policy }

    /// Forgets the hosts that were used longest ago: many at once, because looking for them costs a look at all.
    private static func forgetHalf(of hosts: inout [String: Host]) {
      let median = hosts.values.map(\.lastUse).sorted()[hosts.count / 2]
      hosts = hosts.filter { $0.value.lastUse >= median }
    }

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
      if candidate.host.isEmpty { return .admitted }
      let limit = hosts.withLock { $0[candidate.host].map { Int($0.limit) } } ?? policy.initial
      let count = running.perHost[candidate.host] ?? 0
      guard count >= limit else { return .admitted }
      return .hostFull("\(count) downloads from \(candidate.host) are running, and it is allowed \(limit) for now")
    }

    func ended(_ candidate: Candidate, _ end: RunEnd) {
      if candidate.host.isEmpty { return }
      hosts.withLock { hosts in
        var host = hosts[candidate.host] ?? Host(limit: Double(policy.initial), lastUse: end.endedAt)
        host.lastUse = end.endedAt
        switch end.result {
        case .finished:
          host.limit = min(Double(policy.maximum), host.limit + 1 / host.limit)
        case .failed(let error) where error.meansOverload:
          // The downloads that started before the decrease tell the same again.
          guard host.lastDecrease.map({ end.startedAt >= $0 }) ?? true else { break }
          host.limit = max(Double(policy.minimum), (host.limit / 2).rounded(.down))
          host.lastDecrease = end.endedAt
        case .failed, .stopped: break
        }
        hosts[candidate.host] = host
        if hosts.count > Self.mostHosts { Self.forgetHalf(of: &hosts) }
      }
    }
  }
}

extension DownloadError {
  /// Whether a server that is asked less often may succeed.
  fileprivate var meansOverload: Bool { httpStatus == 429 || httpStatus == 503 || code == .timedOut }
}
