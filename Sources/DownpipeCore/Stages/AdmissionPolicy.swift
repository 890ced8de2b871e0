/// A policy that decides whether one more download may run beside the running ones.
///
/// All admission policies of a pipeline must admit a download before it starts.
public protocol AdmissionPolicy: Stage {
  /// Returns whether `candidate` may start beside the downloads that run.
  ///
  /// The engine asks in order of rank. The function must be pure and cheap.
  ///
  /// An admission policy is a limit and nothing else. While no download runs, it must admit some candidate. If it
  /// refuses a candidate beside some running downloads, it must also refuse it beside more of the same kind. To hold
  /// downloads back altogether, use a ``Gate``.
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission

  /// Returns a session that decides while the downloader runs, for a policy that learns or counts over time.
  ///
  /// It is called once when a downloader starts, and once when the policy replaces another one. The default session
  /// asks ``admit(_:beside:)``.
  func start() -> any AdmissionSession

  /// The most downloads that this policy lets run at once; `nil` for no limit. Sources size their connection pools by
  /// it.
  var maximumConcurrent: Int? { get }
  /// The most downloads from one host that this policy lets run at once; `nil` for no limit.
  var maximumPerHost: Int? { get }
}

extension AdmissionPolicy {
  /// The default: admits every download, for policies whose session decides.
  public func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }
  /// The default: a session without state, which asks ``admit(_:beside:)``.
  public func start() -> any AdmissionSession { StatelessAdmission(policy: self) }
  /// The default: `nil`, no limit.
  public var maximumConcurrent: Int? { nil }
  /// The default: `nil`, no limit.
  public var maximumPerHost: Int? { nil }
  /// Adds the policy to the pipeline's admission policies.
  public func contribute(to parts: inout PipelineParts) { parts.admission.append(self) }
}

/// The properties of a waiting download that gates and admission policies decide by.
///
/// Equal candidates are admitted or refused together, so a decision costs the same for ten million equal downloads as
/// for one. Metadata differs from download to download and is therefore left out. Use tags for what a policy or gate
/// must distinguish.
public struct Candidate: Sendable, Hashable {
  /// The host of the download's URL, in lower case, with the port if the URL has one.
  public var host: String
  /// Why the download is wanted.
  public var intent: Intent
  /// The priority of the download.
  public var priority: Priority
  /// The tags of the download.
  public var tags: Set<String>

  /// Creates a candidate.
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
  /// The properties of the record that gates and admission policies decide by.
  public var candidate: Candidate { request.candidate }
}

extension DownloadRequest {
  /// The properties of the request that gates and admission policies decide by.
  package var candidate: Candidate { Candidate(host: host, intent: intent, priority: priority, tags: tags) }
}

/// The number of downloads that run, in total, by host and by tag.
///
/// A download counts from its start until its artifact is published. The ledger records that end a moment later, so it
/// may list more running downloads.
public struct RunningDownloads: Sendable, Hashable {
  /// The number of running downloads.
  public private(set) var total = 0
  /// The number of running downloads by host; hosts without one are left out.
  public private(set) var perHost: [String: Int] = [:]
  /// The number of running downloads by tag; tags without one are left out.
  public private(set) var perTag: [String: Int] = [:]

  /// Creates counts of zero.
  public init() {}

  /// Counts one more running download.
  public mutating func insert(_ candidate: Candidate) {
    total += 1
    perHost[candidate.host, default: 0] += 1
    for tag in candidate.tags { perTag[tag, default: 0] += 1 }
  }

  /// Counts one running download less.
  public mutating func remove(_ candidate: Candidate) {
    total -= 1
    perHost[candidate.host] = perHost[candidate.host].flatMap { $0 > 1 ? $0 - 1 : nil }
    for tag in candidate.tags { perTag[tag] = perTag[tag].flatMap { $0 > 1 ? $0 - 1 : nil } }
  }
}

/// The decision of an admission policy.
public enum Admission: Sendable, Hashable {
  /// The download may start.
  case admitted
  /// Neither this nor any other download may start for now, for the given reason.
  case full(String)
  /// No download from this host may start for now, for the given reason; others may.
  case hostFull(String)
  /// This candidate and its equals may not start for now, for the given reason; others may.
  case refused(String)
  /// No download of the scope may start before the instant, for the given reason. The engine asks again then.
  ///
  /// The instant is a value of ``TimeSource/now``. Downloads that run already are not affected.
  case wait(String, until: Duration, scope: Scope)

  /// The downloads that a refusal with a time applies to.
  public enum Scope: Sendable, Hashable {
    /// All downloads.
    case all
    /// The downloads from the candidate's host.
    case host
    /// The downloads with equal candidates.
    case equals
  }
}
