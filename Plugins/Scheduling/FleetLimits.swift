public import DownpipeCore

/// An admission policy that limits how many downloads run at once over all workers of a ledger together.
///
/// ```swift
/// Limits(concurrent: 16)              // this worker
/// FleetLimits(perHost: 2)             // all workers together
/// ```
/// The ledger counts, so that the limits also hold between machines. It has to be one that can: a downloader with another
/// one does not start. All workers need the same limits; otherwise each keeps its own, and counts the downloads of all.
///
/// A download counts until its outcome is in the ledger. The downloads of a worker that has died count until another one has
/// taken them back, after their leases have expired. One that was started by hand starts beyond the limits, and does not
/// count. The limit per host does not apply to URLs without a host.
public struct FleetLimits: AdmissionPolicy, Hashable {
  /// The most downloads that run at once at all workers; no limit when `nil`.
  public let concurrent: Int?
  /// The most downloads that run at once from one host with its port; no limit when `nil`.
  public let perHost: Int?
  /// The most downloads that run at once with a tag; other tags are not limited.
  public let perTag: [String: Int]
  /// The identifier among the admission policies of the pipeline. Limits with different identifiers count on their own.
  public let id: String

  /// Creates limits. A limit below 1 counts as 1.
  ///
  /// - Parameters:
  ///   - concurrent: The most downloads that run at once at all workers; no limit when `nil`. Workers wait for each other
  ///     in each lease then.
  ///   - perHost: The most downloads from one host with its port; no limit when `nil`.
  ///   - perTag: The most downloads with a tag.
  ///   - id: The identifier among the admission policies of the pipeline.
  public init(
    concurrent: Int? = nil, perHost: Int? = nil, perTag: [String: Int] = [:], id: String = "FleetLimits"
  ) {
    self.id = id
    self.concurrent = concurrent.map { max(1, $0) }
    self.perHost = perHost.map { max(1, $0) }
    self.perTag = perTag.mapValues { max(1, $0) }
  }

  /// The limits as text.
  public var summary: String {
    var parts: [String] = []
    if let concurrent { parts.append("\(concurrent) at once") }
    if let perHost { parts.append("\(perHost) from one host") }
    parts += perTag.sorted { $0.key < $1.key }.map { "\($0.value) tagged \($0.key)" }
    return parts.isEmpty ? "no limits" : parts.joined(separator: ", ") + " at all workers"
  }

  /// The limit for one host; `nil` for no separate limit.
  public var maximumPerHost: Int? { perHost }
  /// The limit for all downloads.
  public var maximumConcurrent: Int? { concurrent }

  /// `true`, unless there is no limit.
  public var hasSharedLimits: Bool { concurrent != nil || perHost != nil || !perTag.isEmpty }

  /// The limits for a candidate: the total, its host, its tags.
  public func sharedLimits(for candidate: Candidate) -> [SharedLimit] {
    var limits: [SharedLimit] = []
    if let concurrent { limits.append(SharedLimit(key: "\(id) of all", most: concurrent)) }
    if let perHost, !candidate.host.isEmpty {
      limits.append(SharedLimit(key: "\(id) of host \(candidate.host)", most: perHost))
    }
    if !perTag.isEmpty {
      for tag in candidate.tags.sorted() {
        if let most = perTag[tag] { limits.append(SharedLimit(key: "\(id) of tag \(tag)", most: most)) }
      }
    }
    return limits
  }

  /// The same limits for this worker alone: what it runs itself needs no look into the ledger.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    Limits(concurrent: concurrent ?? .max, perHost: perHost, perTag: perTag).admit(candidate, beside: running)
  }
}
