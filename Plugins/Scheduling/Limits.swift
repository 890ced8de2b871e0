public import DownpipeCore

/// An admission policy that limits how many downloads run at once: in total, from one host, with one tag, by their bytes.
///
/// ```swift
/// Limits(concurrent: 8, perHost: 2, perTag: ["video": 1])
/// ```
/// All admission policies of a pipeline must admit a download; each needs an `id` of its own. A limit below 1 counts as
/// 1, because 0 would stop all downloads without a reason. To hold downloads back use a gate, which gives a reason. The
/// limit per host does not apply to URLs without a host, such as those of local files.
///
/// With `bytesInFlight`, a download starts while the sizes of all running downloads, its own included, do not exceed the
/// limit; see ``/DownpipeCore/RunningDownloads/bytes``. What comes later in the queue waits, too, even if it is smaller.
/// A file that is larger than the limit runs alone. Files of unknown size run one at a time, beside others while those
/// are below the limit; a file that turns out to be larger than the rest of the limit goes on, and no other starts.
public struct Limits: AdmissionPolicy, Hashable {
  /// The most downloads that run at once.
  public let concurrent: Int
  /// The most downloads that run at once from one host with its port; no separate limit when `nil`.
  public let perHost: Int?
  /// The most downloads that run at once with a tag; other tags are not limited.
  public let perTag: [String: Int]
  /// The most bytes that the running downloads have together; no limit when `nil`.
  public let bytesInFlight: Int64?
  /// The identifier among the admission policies of the pipeline; limits replace those with the same id.
  public let id: String

  /// Creates limits. A limit below 1 counts as 1.
  ///
  /// - Parameters:
  ///   - concurrent: The most downloads that run at once.
  ///   - perHost: The most downloads from one host with its port; no separate limit when `nil`.
  ///   - perTag: The most downloads with a tag.
  ///   - bytesInFlight: The most bytes that the running downloads have together; no limit when `nil`.
  ///   - id: The identifier among the admission policies of the pipeline.
  public init(
    concurrent: Int = 5, perHost: Int? = nil, perTag: [String: Int] = [:], bytesInFlight: Int64? = nil,
    id: String = "Limits"
  ) {
    self.id = id
    self.concurrent = max(1, concurrent)
    self.perHost = perHost.map { max(1, $0) }
    self.perTag = perTag.mapValues { max(1, $0) }
    self.bytesInFlight = bytesInFlight.map { max(1, $0) }
  }

  /// The limits as text.
  public var summary: String {
    var parts = ["\(concurrent) at once"]
    if let perHost { parts.append("\(perHost) from one host") }
    parts += perTag.sorted { $0.key < $1.key }.map { "\($0.value) tagged \($0.key)" }
    if let bytesInFlight { parts.append("\(ByteFormat.decimal.format(bytesInFlight)) in flight") }
    return parts.joined(separator: ", ")
  }

  /// The limit for all downloads.
  public var maximumConcurrent: Int? { concurrent }
  /// The limit for one host; `nil` for no separate limit.
  public var maximumPerHost: Int? { perHost }

  /// Compares the running downloads with the limits: first the total, then the bytes, then the host, then the tags in
  /// alphabetical order.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    if running.total >= concurrent {
      return .full(Self.sentence(running.total, of: concurrent))
    }
    if let bytesInFlight, running.total > 0, let reason = Self.excess(of: candidate, beside: running, bytesInFlight) {
      return .full(reason)
    }
    if let perHost, !candidate.host.isEmpty, let count = running.perHost[candidate.host], count >= perHost {
      return .hostFull(Self.sentence(count, of: perHost, " from \(candidate.host)"))
    }
    // Only limited tags are sorted; most candidates have none.
    for tag in candidate.tags.filter({ perTag[$0] != nil }).sorted() {
      if let limit = perTag[tag], let count = running.perTag[tag], count >= limit {
        return .refused(Self.sentence(count, of: limit, " tagged “\(tag)”"))
      }
    }
    return .admitted
  }

  /// Why a download would exceed the limit of bytes; `nil` if it would not.
  private static func excess(of candidate: Candidate, beside running: RunningDownloads, _ limit: Int64) -> String? {
    let format = ByteFormat.decimal
    switch candidate.size {
    case .known(let size):
      guard running.bytes > limit || size > limit - running.bytes else { return nil }
      return "\(format.format(running.bytes)) of \(format.format(limit)) are in flight: no room for "
        + format.format(size)
    case .unknown:
      if running.unknownSizes > 0 { return "a download of unknown size is running: one at a time" }
      guard running.bytes >= limit else { return nil }
      return "\(format.format(running.bytes)) of \(format.format(limit)) are in flight"
    }
  }

  /// Returns the reason, such as `3 of 3 downloads from example.org are running`. More downloads than the limit can run
  /// after the limit was lowered or a start was forced.
  private static func sentence(_ count: Int, of limit: Int, _ which: String = "") -> String {
    limit == 1
      ? "\(count) of 1 download\(which) is running" : "\(count) of \(limit) downloads\(which) are running"
  }
}
