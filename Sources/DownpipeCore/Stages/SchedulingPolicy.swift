public import Foundation

/// Says who goes next: gives each waiting download a ``Rank``.
///
/// A policy only ranks; it never starts anything. Ranks are kept and indexed by the ledger, so that
/// ten million waiting downloads cost disk and not memory.
///
/// The ledger keeps them together with the ``Stage/name``, the ``version`` and the ``Stage/summary`` of the policy that
/// gave them; where one of the three differs at the next launch, every download is ranked anew. So **what changes the
/// ranks has to change one of them**: a setting, such as a weight or an interval, belongs in the summary, and another
/// algorithm gets another version. Otherwise downloads that wait already keep the ranks of the old setting, and those
/// that are added get ranks of the new one.
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
  /// The rank of a download; the smallest rank goes first, and of equal ranks the one that arrived first. Pure: equal
  /// contexts give equal ranks.
  func rank(_ context: RankingContext) -> Rank
  /// Which ranks these are: another number where equal contexts no longer get the ranks that an earlier release of the
  /// policy gave them. A ledger with ranks of another name, version or summary is ranked anew when it is opened.
  var version: Int { get }
}

extension SchedulingPolicy {
  /// 1.
  public var version: Int { 1 }

  /// Becomes the pipeline's policy.
  public func contribute(to parts: inout PipelineParts) { parts.schedulingPolicies.append(self) }
}

/// What a scheduling policy may know.
public struct RankingContext: Sendable, Hashable {
  /// Which download.
  public var id: DownloadID
  /// How much it matters.
  public var priority: Priority
  /// Why it is wanted.
  public var intent: Intent
  /// The order of arrival: grows with each download added, over restarts too.
  public var arrival: Int64
  /// When it was added.
  public var createdAt: Date
  /// The host it is fetched from, lower case, with an explicit port.
  public var host: String
  /// Its labels.
  public var tags: Set<String>
  /// What else travels with it.
  public var metadata: [String: String]
  /// The size that is expected of it, or else the hint of its request.
  public var size: ByteCount

  /// Makes a context.
  public init(
    id: DownloadID, priority: Priority = .normal, intent: Intent = .userInitiated, arrival: Int64,
    createdAt: Date = Date(timeIntervalSince1970: 0), host: String = "", tags: Set<String> = [],
    metadata: [String: String] = [:], size: ByteCount = .unknown
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
  }
}

extension DownloadRecord {
  /// The record as scheduling policies see it.
  package var rankingContext: RankingContext { rankingContext(host: request.host) }

  /// The record as scheduling policies see it. Pass the host where it is known: to read it parses the URL.
  package func rankingContext(host: String) -> RankingContext {
    RankingContext(
      id: request.id, priority: request.priority, intent: request.intent, arrival: arrival, createdAt: createdAt,
      host: host, tags: request.tags, metadata: request.metadata, size: request.likelySize)
  }
}
