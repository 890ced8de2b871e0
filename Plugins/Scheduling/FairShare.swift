public import DownpipeCore
import Synchronization

/// An admission policy that gives each host, tag or other group its share of the starts.
///
/// ```swift
/// FairShare(by: .host)
/// FairShare(by: .tag, weights: ["paying": 3])               // three starts for each start of another tag
/// FairShare { candidate in candidate.intent.rawValue }      // groups of one's own
/// ```
/// A group with a million waiting downloads does not hold back a group with ten: while several groups wait, their
/// downloads start in turn, as often as the groups' weights say. A share counts starts, not bytes or time. Within a
/// group the scheduling policy decides; between groups its ranks count only when the groups are level, so an urgent
/// download waits for the turn of its group. Put priorities into the groups if they are to count between them.
///
/// The order follows start-time fair queuing: a group with weight *w* advances by 1/*w* with each start, and the group
/// that is least advanced goes next. A group that had nothing waiting, or was held back by a limit or a gate, continues
/// beside the others and does not make up for the past. So of two groups that wait all the time, neither is ever more
/// than one start (by its weight) ahead of its share. Nothing is stored: after a restart all groups are level.
///
/// It limits nothing: combine it with ``Limits``. With `SQLiteLedger` a choice costs the same for any number of downloads
/// and groups; `MemoryLedger` reads its whole queue for each choice.
public struct FairShare: AdmissionPolicy {
  /// What the downloads of a group have in common.
  public enum Grouping: Sendable {
    /// The host with its port.
    case host
    /// The tag. A download with several tags belongs to the first tag with a weight, in alphabetical order, or else to
    /// the first tag; downloads without tags are a group.
    case tag
    /// A text that a closure returns. It must be pure and cheap.
    case custom(@Sendable (Candidate) -> String)
  }

  /// What the downloads of a group have in common.
  public let grouping: Grouping
  /// The weights of groups, by the name of the host, the tag or the text; 1 for groups without an entry.
  public let weights: [String: Double]
  /// The identifier among the admission policies of the pipeline.
  public let id: String

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - grouping: What the downloads of a group have in common.
  ///   - weights: The weights of groups; 1 for groups without an entry. A weight is clamped to 0.001 … 1,000.
  ///   - id: The identifier among the admission policies of the pipeline. Only the first policy that orders downloads
  ///     has an effect.
  public init(by grouping: Grouping, weights: [String: Double] = [:], id: String = "FairShare") {
    self.grouping = grouping
    // NaN compares as false and counts as 1.
    self.weights = weights.mapValues { $0 > 0 ? min(max($0, 0.001), 1_000) : $0 <= 0 ? 0.001 : 1 }
    self.id = id
  }

  /// Creates a policy with groups of one's own.
  ///
  /// - Parameters:
  ///   - weights: The weights of groups; 1 for groups without an entry.
  ///   - id: The identifier among the admission policies of the pipeline.
  ///   - group: Returns the group of a download. It must be pure and cheap.
  public init(
    weights: [String: Double] = [:], id: String = "FairShare", by group: @escaping @Sendable (Candidate) -> String
  ) {
    self.init(by: .custom(group), weights: weights, id: id)
  }

  /// The groups and weights as text.
  public var summary: String {
    let groups =
      switch grouping {
      case .host: "hosts"
      case .tag: "tags"
      case .custom: "groups"
      }
    guard !weights.isEmpty else { return "\(groups) in turn" }
    let list = weights.sorted { $0.key < $1.key }.prefix(5).map { "\($0.key) \($0.value.formatted)" }
    return "\(groups) in turn, by weight: " + list.joined(separator: ", ") + (weights.count > 5 ? ", …" : "")
  }

  /// Returns the group of a download.
  public func group(of candidate: Candidate) -> String {
    switch grouping {
    case .host: return candidate.host
    case .tag:
      if candidate.tags.count < 2 { return candidate.tags.first ?? "" }
      return candidate.tags.filter { weights[$0] != nil }.min() ?? candidate.tags.min() ?? ""
    case .custom(let group): return group(candidate)
    }
  }

  /// Admits every download: the policy orders downloads and limits nothing.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }

  /// Returns a session in which all groups are level.
  public func start() -> any AdmissionSession { Session(policy: self) }

  private final class Session: AdmissionSession {
    /// The advance of the groups, in millionths of a start.
    private struct State {
      var advance = RisingLevels<UInt64>()
      /// The advance of the group that started last: no waiting group is behind it.
      var level: UInt64 = 0
    }

    private let policy: FairShare
    private let state = Mutex(State())

    init(policy: FairShare) { self.policy = policy }

    var order: CandidateOrder? {
      CandidateOrder(group: policy.group) { [self] group in
        state.withLock { max($0.advance[group] ?? 0, $0.level) }
      }
    }

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission { .admitted }

    func started(_ candidate: Candidate, at now: Duration) {
      let group = policy.group(of: candidate)
      let step = UInt64(1_000_000 / (policy.weights[group] ?? 1))
      state.withLock { state in
        let start = max(state.advance[group] ?? 0, state.level)
        state.level = start
        state.advance.set(start + step, for: group, above: start)
      }
    }
  }
}

extension Double {
  /// The number without a fraction of zero.
  fileprivate var formatted: String { self == rounded() ? "\(Int64(self))" : "\(self)" }
}

extension AdmissionPolicy where Self == FairShare {
  /// Gives each host, tag or other group its share of the starts.
  public static func fairShare(by grouping: FairShare.Grouping, weights: [String: Double] = [:]) -> FairShare {
    FairShare(by: grouping, weights: weights)
  }
}
