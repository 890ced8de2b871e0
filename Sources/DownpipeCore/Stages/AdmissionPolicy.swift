/// A policy that decides whether one more download may run beside the running ones.
///
/// All admission policies of a pipeline must admit a download before it starts. A policy of one's own is a function:
///
/// ```swift
/// /// Lets at most 2 GB be in flight.
/// struct InFlight: AdmissionPolicy {
///   let limit: Int64 = 2_000_000_000
///
///   func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
///     // A file that is larger than the limit runs alone.
///     if running.total == 0 { return .admitted }
///     switch candidate.size {
///     case .known(let bytes):
///       return bytes <= limit - running.bytes ? .admitted : .full("no more than \(limit) bytes at once")
///     case .unknown:
///       // One at a time: its server is about to state its size.
///       return running.unknownSizes == 0 ? .admitted : .full("a file of unknown size is running")
///     }
///   }
/// }
/// ```
public protocol AdmissionPolicy: Stage {
  /// Returns whether `candidate` may start beside the downloads that run.
  ///
  /// The engine asks in order of rank. The function must be pure and cheap.
  ///
  /// An admission policy is a limit and nothing else. While no download runs, it must admit some candidate. If it
  /// refuses a candidate beside some running downloads, it must also refuse it beside more of the same kind. To hold
  /// downloads back altogether, use a ``Gate``.
  ///
  /// It has no default: a policy that admits every download by mistake would limit nothing. A policy whose session
  /// decides (``start()``) is never asked itself, and returns `.admitted`.
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission

  /// Returns a session that decides while the downloader runs, for a policy that learns or counts over time.
  ///
  /// It is called once when a downloader starts, and once when the policy replaces another one. The default session
  /// asks ``admit(_:beside:)``.
  func start() -> any AdmissionSession

  /// The most downloads that this policy lets run at once; `nil` for no limit. A number below 1 counts as 1. Sources size
  /// their connection pools by it.
  var maximumConcurrent: Int? { get }
  /// The most downloads from one host that this policy lets run at once; `nil` for no limit. A number below 1 counts as 1.
  var maximumPerHost: Int? { get }

  /// Whether the policy has limits for all downloaders of a ledger together. A downloader does not start with them unless
  /// its ledger can count for all.
  var hasSharedLimits: Bool { get }
  /// The limits for all downloaders of the ledger together that a candidate counts for.
  ///
  /// They are asked before ``admit(_:beside:)``, while the ledger leases. The function must be pure and cheap.
  func sharedLimits(for candidate: Candidate) -> [SharedLimit]
}

extension AdmissionPolicy {
  /// The default: a session without state, which asks ``admit(_:beside:)``.
  public func start() -> any AdmissionSession { StatelessAdmission(policy: self) }
  /// The default: `nil`, no limit.
  public var maximumConcurrent: Int? { nil }
  /// The default: `nil`, no limit.
  public var maximumPerHost: Int? { nil }
  /// The default: `false`.
  public var hasSharedLimits: Bool { false }
  /// The default: none.
  public func sharedLimits(for candidate: Candidate) -> [SharedLimit] { [] }
  /// Adds the policy to the pipeline's admission policies.
  public func contribute(to parts: inout PipelineParts) { parts.admission.append(self) }
}

/// The properties of a waiting download that gates and admission policies decide by.
///
/// Candidates that are equal but for their sizes wait in one line: while the first of them is refused, the others wait
/// behind it. So a decision costs the same for ten million downloads as for one, and a large file is not overtaken for
/// ever by smaller ones from the same host. Metadata differs from download to download and is therefore left out. Use
/// tags for what a policy or gate must distinguish.
public struct Candidate: Sendable, Hashable {
  /// The host of the download's URL, in lower case, with the port if the URL has one.
  public var host: String
  /// Why the download is wanted.
  public var intent: Intent
  /// The priority of the download.
  public var priority: Priority
  /// The tags of the download.
  public var tags: Set<String>
  /// The size of the whole file, as far as it is known: what a server has stated, or else what the request expects or
  /// hints at. Bytes that are on disk already are included.
  ///
  /// Admission policies, rate policies, segment policies and ``Gate/room(for:)`` see it. The rules of gates do not: to
  /// them every size is unknown, because a closed gate holds back all downloads that are equal but for their sizes.
  public var size: ByteCount

  /// Creates a candidate.
  public init(
    host: String = "", intent: Intent = .userInitiated, priority: Priority = .normal,
    tags: Set<String> = [], size: ByteCount = .unknown
  ) {
    self.host = host
    self.intent = intent
    self.priority = priority
    self.tags = tags
    self.size = size
  }

  /// The candidate with an unknown size: what the downloads of one line have in common.
  ///
  /// A ledger that skips or holds a candidate does so for all downloads with the same value.
  public var withoutSize: Candidate {
    guard size != .unknown else { return self }
    var candidate = self
    candidate.size = .unknown
    return candidate
  }
}

extension DownloadRecord {
  /// The properties of the record that gates and admission policies decide by.
  public var candidate: Candidate {
    var candidate = request.candidate
    candidate.size = likelySize
    return candidate
  }

  /// The size of the file that a server has stated, or else the one that the request expects or hints at.
  package var likelySize: ByteCount { checkpoint.total == .unknown ? request.likelySize : checkpoint.total }
}

extension DownloadRequest {
  /// The properties of the request that gates and admission policies decide by.
  package var candidate: Candidate {
    Candidate(host: host, intent: intent, priority: priority, tags: tags, size: likelySize)
  }
}

/// The downloads that run: their number in total, by host and by tag, and their bytes.
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
  /// The number of running downloads whose size is unknown. ``bytes`` does not include them.
  public private(set) var unknownSizes = 0
  // Sizes given by servers and users may overflow 64 bits, and each has to be subtracted again.
  private var sum: UInt128 = 0

  /// The bytes in flight: the sum of the known sizes of the running downloads.
  ///
  /// Each download counts with its whole size until it ends, including what it has received. A size that a server
  /// states counts before the next download starts.
  public var bytes: Int64 { Int64(clamping: sum) }

  /// Creates counts of zero.
  public init() {}

  /// Counts one more running download.
  public mutating func insert(_ candidate: Candidate) {
    total += 1
    perHost[candidate.host, default: 0] += 1
    for tag in candidate.tags { perTag[tag, default: 0] += 1 }
    if let bytes = candidate.size.bytes { sum += UInt128(bytes) } else { unknownSizes += 1 }
  }

  /// Counts one running download less.
  public mutating func remove(_ candidate: Candidate) {
    total -= 1
    perHost[candidate.host] = perHost[candidate.host].flatMap { $0 > 1 ? $0 - 1 : nil }
    for tag in candidate.tags { perTag[tag] = perTag[tag].flatMap { $0 > 1 ? $0 - 1 : nil } }
    if let bytes = candidate.size.bytes { sum -= UInt128(bytes) } else { unknownSizes -= 1 }
  }
}

/// The decision of an admission policy.
public enum Admission: Sendable, Hashable {
  /// The download may start.
  case admitted
  /// Neither this nor any other download may start for now, for the given reason.
  ///
  /// A limit of bytes may be full for a large download while there is room for a smaller one: what comes later in the
  /// queue waits all the same, so that the large download gets its turn.
  case full(String)
  /// No download from this host may start for now, for the given reason; others may.
  case hostFull(String)
  /// This candidate and those that are equal but for their sizes may not start for now, for the given reason; others
  /// may.
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
    /// The downloads whose candidates are equal but for their sizes.
    case equals
  }
}
