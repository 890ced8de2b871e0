/// Says whether one more download may run beside those that do. Several compose by *and*.
public protocol AdmissionPolicy: Stage {
  /// Whether `candidate` may start while `running` runs. Pure and cheap: it is asked in order of rank.
  ///
  /// A limit, and nothing else: while nothing runs it admits some download, and what it refuses beside some of its like
  /// it refuses beside more of them. What holds downloads up altogether is a ``Gate``.
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission

  /// The most downloads this policy ever lets run at once; sources size their pools by it.
  var maximumConcurrent: Int? { get }
  /// The most downloads this policy ever lets run at once from one host.
  var maximumPerHost: Int? { get }
}

extension AdmissionPolicy {
  /// No limit.
  public var maximumConcurrent: Int? { nil }
  /// No limit.
  public var maximumPerHost: Int? { nil }
  /// Adds the policy to those that must all admit.
  public func contribute(to parts: inout PipelineParts) { parts.admission.append(self) }
}

/// A waiting download, as policies and gates see it: what it has in common with others. Those that are alike in all of
/// this are admitted or refused alike, so that ten million of them cost no more than one. Metadata, which differs from
/// download to download, is therefore not part of it: give a label to what a policy or a gate has to tell apart.
public struct Candidate: Sendable, Hashable {
  /// The host it is fetched from, lower case, with an explicit port.
  public var host: String
  /// Why it is wanted.
  public var intent: Intent
  /// How much it matters.
  public var priority: Priority
  /// Its labels.
  public var tags: Set<String>

  /// Makes a candidate.
  public init(
    host: String = "", intent: Intent = .userInitiated, priority: Priority = .normal,
    tags: Set<String> = []
  ) {
    self.host = host
    self.intent = intent
    self.priority = priority
    self.tags = tags
  }
}

extension DownloadRecord {
  /// The record as gates and admission policies see it.
  public var candidate: Candidate {
    Candidate(host: request.host, intent: request.intent, priority: request.priority, tags: request.tags)
  }
}

/// What runs at the moment, counted: each download from its start until its file is published. The ledger hears of
/// that end a moment later, and may show more that run.
public struct RunningDownloads: Sendable, Hashable {
  /// How many run.
  public private(set) var total = 0
  /// How many run from each host.
  public private(set) var perHost: [String: Int] = [:]
  /// How many run with each label.
  public private(set) var perTag: [String: Int] = [:]

  /// Nothing runs.
  public init() {}

  /// Counts one more.
  public mutating func insert(_ candidate: Candidate) {
    total += 1
    perHost[candidate.host, default: 0] += 1
    for tag in candidate.tags { perTag[tag, default: 0] += 1 }
  }

  /// Counts one less.
  public mutating func remove(_ candidate: Candidate) {
    total -= 1
    perHost[candidate.host] = perHost[candidate.host].flatMap { $0 > 1 ? $0 - 1 : nil }
    for tag in candidate.tags { perTag[tag] = perTag[tag].flatMap { $0 > 1 ? $0 - 1 : nil } }
  }
}

/// Whether a download may start.
public enum Admission: Sendable, Hashable {
  /// It may.
  case admitted
  /// It may not, nor may any other for now.
  case full(String)
  /// It may not, nor may any other from its host; others may.
  case hostFull(String)
  /// This one may not, nor may those that are alike; others may.
  case refused(String)
}
