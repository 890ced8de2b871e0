public import DownpipeCore

/// The most downloads that may run at once: in all, from one host, with one label.
///
/// ```swift
/// Limits(concurrent: 8, perHost: 2, perTag: ["video": 1])
/// ```
/// Several policies compose by *and*; each needs an `id` of its own. A limit below 1 would stop everything without saying so, and counts as 1;
/// to hold downloads back use a gate, which tells why. URLs without a host, such as those of local files, have no
/// host to be spared.
public struct Limits: AdmissionPolicy, Hashable {
  /// The most in all.
  public let concurrent: Int
  /// The most from one host (with its port); as many as in all when `nil`.
  public let perHost: Int?
  /// The most that bear a label; labels that are not named are not limited.
  public let perTag: [String: Int]
  /// What tells it from other limits of the pipeline, and which ones it replaces.
  public let id: String

  /// Sets limits; each below 1 counts as 1.
  ///
  /// - Parameters:
  ///   - concurrent: the most in all.
  ///   - perHost: the most from one host, with its port; as many as in all when `nil`.
  ///   - perTag: the most that bear a label.
  ///   - id: tells it from other limits of the same pipeline.
  public init(concurrent: Int = 5, perHost: Int? = nil, perTag: [String: Int] = [:], id: String = "Limits") {
    self.id = id
    self.concurrent = max(1, concurrent)
    self.perHost = perHost.map { max(1, $0) }
    self.perTag = perTag.mapValues { max(1, $0) }
  }

  /// The limits in words.
  public var summary: String {
    var parts = ["\(concurrent) at once"]
    if let perHost { parts.append("\(perHost) from one host") }
    parts += perTag.sorted { $0.key < $1.key }.map { "\($0.value) tagged \($0.key)" }
    return parts.joined(separator: ", ")
  }

  /// The limit in all.
  public var maximumConcurrent: Int? { concurrent }
  /// The limit for one host.
  public var maximumPerHost: Int? { perHost }

  /// Compares what runs with the limits: the one in all first, then the host's, then those of the labels in
  /// alphabetical order.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    if running.total >= concurrent {
      return .full(Self.sentence(running.total, of: concurrent))
    }
    if let perHost, !candidate.host.isEmpty, let count = running.perHost[candidate.host], count >= perHost {
      return .hostFull(Self.sentence(count, of: perHost, " from \(candidate.host)"))
    }
    // Sorting only the labels that are limited; most candidates bear none.
    for tag in candidate.tags.filter({ perTag[$0] != nil }).sorted() {
      if let limit = perTag[tag], let count = running.perTag[tag], count >= limit {
        return .refused(Self.sentence(count, of: limit, " tagged “\(tag)”"))
      }
    }
    return .admitted
  }

  /// `3 of 3 downloads from example.org are running`. More than the limit may run: it was lowered meanwhile, or a
  /// start was forced.
  private static func sentence(_ count: Int, of limit: Int, _ which: String = "") -> String {
    limit == 1
      ? "\(count) of 1 download\(which) is running" : "\(count) of \(limit) downloads\(which) are running"
  }
}
