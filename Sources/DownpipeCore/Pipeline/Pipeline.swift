/// The stages of a downloader, put together.
///
/// ```swift
/// let pipeline = Pipeline {
///   HTTPSource()
///   FileStore("~/Downloads")
///   Gunzip()
/// }
/// print(pipeline)
/// ```
/// A pipeline without a source or without a storage, and a chain of steps that do not fit, do not compile.
public struct Pipeline: Sendable {
  /// The sources, tried in order by ``Source/accepts(_:)``.
  public internal(set) var sources: [any Source]
  /// Who goes next; the order of arrival when `nil`.
  public internal(set) var scheduling: (any SchedulingPolicy)?
  /// Who may run beside whom; all must admit.
  public internal(set) var admission: [any AdmissionPolicy]
  /// Whether the network may be used; all must be open.
  public internal(set) var gates: [any Gate]
  /// What a failure means; ``Retry`` with its defaults when left out.
  public internal(set) var retry: any RetryPolicy
  /// Who gives fresh links for dead ones.
  public let refresher: (any LinkRefresher)?
  /// What wraps each opening, the outermost first.
  public internal(set) var interceptors: [any RequestInterceptor]
  /// Where bytes land.
  public let storage: any Storage
  /// What survives; ``MemoryLedger``, which survives nothing, when left out.
  public let ledger: any Ledger
  /// What is done with complete bytes, in order.
  public let steps: [PipelineStep]
  /// Who watches.
  public let observers: [any Observer]
  /// What was written down more than once, of which a pipeline has one.
  let surplus: [SurplusStages]

  /// Puts stages together.
  public init(@PipelineBuilder _ stages: () -> PipelineStages) {
    self.init(stages())
  }

  package init(_ stages: PipelineStages) {
    let parts = stages.parts
    sources = parts.sources
    scheduling = parts.schedulingPolicies.last
    admission = parts.admission
    gates = parts.gates
    retry = parts.retryPolicies.last ?? Retry()
    refresher = parts.refreshers.last
    interceptors = parts.interceptors
    // The builder makes a `PipelineStages` only where its type proves that there is a storage.
    storage = parts.storages[parts.storages.endIndex - 1]
    ledger = parts.ledgers.last ?? MemoryLedger()
    surplus = parts.surplus
    steps = parts.steps
    observers = parts.observers
  }
}

/// What the builder has proven to be a pipeline.
public struct PipelineStages: Sendable {
  let parts: PipelineParts
}

/// The stages of a pipeline in the making; ``Stage/contribute(to:)`` fills it.
public struct PipelineParts: Sendable {
  /// The sources so far.
  public var sources: [any Source] = []
  /// The scheduling policies so far; a pipeline has at most one.
  public var schedulingPolicies: [any SchedulingPolicy] = []
  /// The admission policies so far.
  public var admission: [any AdmissionPolicy] = []
  /// The gates so far.
  public var gates: [any Gate] = []
  /// The retry policies so far; a pipeline has at most one.
  public var retryPolicies: [any RetryPolicy] = []
  /// The refreshers of links so far; a pipeline has at most one.
  public var refreshers: [any LinkRefresher] = []
  /// The interceptors so far.
  public var interceptors: [any RequestInterceptor] = []
  /// The storages so far; a pipeline has one.
  public var storages: [any Storage] = []
  /// The ledgers so far; a pipeline has at most one.
  public var ledgers: [any Ledger] = []
  /// The steps so far.
  public var steps: [PipelineStep] = []
  /// The observers so far.
  public var observers: [any Observer] = []

  /// No stages.
  public init() {}

  mutating func append(_ other: PipelineParts) {
    sources += other.sources
    schedulingPolicies += other.schedulingPolicies
    admission += other.admission
    gates += other.gates
    retryPolicies += other.retryPolicies
    refreshers += other.refreshers
    interceptors += other.interceptors
    storages += other.storages
    ledgers += other.ledgers
    steps += other.steps
    observers += other.observers
  }
}

extension Pipeline {
  /// How the ledger ranks what waits.
  var ranking: Ranking { scheduling.map { Ranking($0) } ?? .arrival }
}
