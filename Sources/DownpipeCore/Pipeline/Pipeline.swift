/// The stages of a downloader.
///
/// ```swift
/// let pipeline = Pipeline {
///   HTTPSource()
///   FileStore("~/Downloads")
///   Gunzip()
/// }
/// print(pipeline)
/// ```
/// A pipeline without a source or without a storage does not compile, and neither does a chain of steps whose forms do
/// not fit.
public struct Pipeline: Sendable {
  /// The sources. The first one whose ``Source/accepts(_:)`` returns `true` opens a URL.
  public internal(set) var sources: [any Source]
  /// The policy that orders waiting downloads; the order of arrival when `nil`.
  public internal(set) var scheduling: (any SchedulingPolicy)?
  /// The policies that limit running downloads; all must admit a download. Without any, five downloads run at once.
  public internal(set) var admission: [any AdmissionPolicy]
  /// The gates that decide whether downloads may use the network; all must be open.
  public internal(set) var gates: [any Gate]
  /// The policies that limit the speed of transfers.
  public internal(set) var rates: [any RatePolicy]
  /// The policy that fetches files over several connections; one connection for each file when `nil`.
  public internal(set) var segments: (any SegmentPolicy)?
  /// The policy that decides about failures; ``Retry`` with its defaults unless given.
  public internal(set) var retry: any RetryPolicy
  /// The stage that replaces expired links; `nil` for none.
  public let refresher: (any LinkRefresher)?
  /// The stages that wrap each opening of a source, the outermost first.
  public internal(set) var interceptors: [any RequestInterceptor]
  /// The storage of partials and finished files.
  public let storage: any Storage
  /// The ledger of downloads; ``MemoryLedger``, which does not outlive the process, unless given.
  public let ledger: any Ledger
  /// The steps after the transfer, in order.
  public let steps: [PipelineStep]
  /// The stages that receive events.
  public let observers: [any Observer]
  /// Kinds of stages that were given more than once although a pipeline has only one.
  let surplus: [SurplusStages]

  /// Creates a pipeline from its stages.
  ///
  /// - Throws: The errors of stages that check their settings, which are written with `try`.
  public init(@PipelineBuilder _ stages: () throws -> PipelineStages) rethrows {
    self.init(try stages())
  }

  /// Creates a pipeline of stages.
  ///
  /// - Parameter change: Changes the parts, for example to wrap stages. A storage has to be left.
  package init(_ stages: PipelineStages, changing change: (inout PipelineParts) -> Void = { _ in }) {
    var parts = stages.parts
    change(&parts)
    sources = parts.sources
    scheduling = parts.schedulingPolicies.last
    admission = parts.admission
    gates = parts.gates
    rates = parts.rates
    segments = parts.segmentPolicies.last
    retry = parts.retryPolicies.last ?? Retry()
    refresher = parts.refreshers.last
    interceptors = parts.interceptors
    // The builder creates a `PipelineStages` only if its type proves that there is a storage.
    storage = parts.storages[parts.storages.endIndex - 1]
    ledger = parts.ledgers.last ?? MemoryLedger()
    surplus = parts.surplus
    steps = parts.steps
    observers = parts.observers
  }
}

/// Stages that the builder has verified to form a pipeline.
public struct PipelineStages: Sendable {
  let parts: PipelineParts
}

extension PipelineStages {
  /// Returns the stages with other parts, for example to wrap stages. A storage has to be left.
  package func changing(_ change: (inout PipelineParts) -> Void) -> PipelineStages {
    var parts = parts
    change(&parts)
    return PipelineStages(parts: parts)
  }
}

extension Pipeline {
  /// The ranking that the ledger applies to waiting downloads.
  var ranking: Ranking { scheduling.map { Ranking($0) } ?? .arrival }
}
