/// The parts of a pipeline under construction, which ``Stage/contribute(to:)`` fills.
public struct PipelineParts: Sendable {
  /// The sources so far.
  public var sources: [any Source] = []
  /// The scheduling policies so far; a pipeline has at most one.
  public var schedulingPolicies: [any SchedulingPolicy] = []
  /// The admission policies so far.
  public var admission: [any AdmissionPolicy] = []
  /// The gates so far.
  public var gates: [any Gate] = []
  /// The rate policies so far.
  public var rates: [any RatePolicy] = []
  /// The segment policies so far; a pipeline has at most one.
  public var segmentPolicies: [any SegmentPolicy] = []
  /// The retry policies so far; a pipeline has at most one.
  public var retryPolicies: [any RetryPolicy] = []
  /// The link refreshers so far; a pipeline has at most one.
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

  /// Creates an empty set of parts.
  public init() {}

  mutating func append(_ other: PipelineParts) {
    sources += other.sources
    schedulingPolicies += other.schedulingPolicies
    admission += other.admission
    gates += other.gates
    rates += other.rates
    segmentPolicies += other.segmentPolicies
    retryPolicies += other.retryPolicies
    refreshers += other.refreshers
    interceptors += other.interceptors
    storages += other.storages
    ledgers += other.ledgers
    steps += other.steps
    observers += other.observers
  }
}
