public import Foundation

/// A policy that gives each waiting download a ``Rank``, which decides the order of the queue.
///
/// A policy only ranks; it never starts a download. The ledger keeps and indexes the ranks, so that ten million waiting
/// downloads cost disk and not memory. A rank is computed when the download is added, when its request changes and when
/// the size of its file becomes known; it does not change with time.
///
/// The ledger stores the ranks together with the ``Stage/name``, the ``version`` and the ``Stage/summary`` of the
/// policy. If one of the three differs at the next launch, all downloads are ranked again. **A change that affects ranks
/// must change one of the three**: put a setting, such as a weight or an interval, into the summary, and give another
/// algorithm another version. Otherwise waiting downloads keep the ranks of the old setting, and new downloads get
/// ranks of the new one.
///
/// ```swift
/// struct SmallestFirst: SchedulingPolicy {
///   var step: Int64
///   var summary: String { "in steps of \(step) bytes" }
///   func rank(_ context: RankingContext) -> Rank {
///     Rank().ascending((context.size.bytes ?? .max) / step).ascending(context.arrival)
///   }
/// }
/// ```
public protocol SchedulingPolicy: Stage {
  /// Returns the rank of a download.
  ///
  /// The smallest rank goes first; of equal ranks, the download that arrived first. The function must be pure: equal
  /// contexts have equal ranks.
  func rank(_ context: RankingContext) -> Rank
  /// The version of the ranking algorithm; 1 by default.
  ///
  /// Change it when equal contexts get other ranks than from an earlier release of the policy. A ledger with ranks of
  /// another name, version or summary is ranked again when it is opened.
  var version: Int { get }
}

extension SchedulingPolicy {
  /// The default: 1.
  public var version: Int { 1 }

  /// Becomes the pipeline's scheduling policy.
  public func contribute(to parts: inout PipelineParts) { parts.schedulingPolicies.append(self) }
}

/// The properties of a download that a scheduling policy ranks by.
public struct RankingContext: Sendable, Hashable {
  /// The id of the download.
  public var id: DownloadID
  /// The priority of the download.
  public var priority: Priority
  /// Why the download is wanted.
  public var intent: Intent
  /// The download's place in the order of arrival. It grows with each download added, across restarts.
  public var arrival: Int64
  /// The time at which the download was added.
  public var createdAt: Date
  /// The host of the download's URL, in lower case, with the port if the URL has one.
  public var host: String
  /// The tags of the download.
  public var tags: Set<String>
  /// The metadata of the request.
  public var metadata: [String: String]
  /// The size of the file as the server has stated it; before its first reply, the expected size of the request, or
  /// else the size hint.
  public var size: ByteCount
  /// The time by which the file is wanted; `nil` when there is none.
  public var deadline: Date?

  /// Creates a context.
  public init(
    id: DownloadID, priority: Priority = .normal, intent: Intent = .userInitiated, arrival: Int64,
    createdAt: Date = Date(timeIntervalSince1970: 0), host: String = "", tags: Set<String> = [],
    metadata: [String: String] = [:], size: ByteCount = .unknown, deadline: Date? = nil
  ) {
    self.id = id
    self.priority = priority
    self.intent = intent
    self.arrival = arrival
    self.createdAt = createdAt
    self.host = host
    self.tags = tags
    self.metadata = metadata
    self.size = size
    self.deadline = deadline
  }
}

extension DownloadRecord {
  /// The properties of the record that scheduling policies rank by.
  package var rankingContext: RankingContext { rankingContext(host: request.host) }

  /// Returns the properties of the record that scheduling policies rank by. Pass the host if it is known: reading it
  /// parses the URL.
  package func rankingContext(host: String) -> RankingContext {
    RankingContext(
      id: request.id, priority: request.priority, intent: request.intent, arrival: arrival, createdAt: createdAt,
      host: host, tags: request.tags, metadata: request.metadata,
      size: likelySize, deadline: request.deadline)
  }
}
