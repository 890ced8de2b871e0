/// A part of a pipeline.
///
/// Stages are immutable values that describe a part; the state of a run is kept in the session or store that a stage
/// opens. Do not conform to `Stage` alone: conform to the protocol of the kind of stage, such as ``Source`` or
/// ``Gate``. A type that is two kinds of stage implements ``contribute(to:)`` itself.
public protocol Stage: Sendable {
  /// The name in messages and in the printed pipeline; the type's name by default.
  var name: String { get }
  /// The identifier among stages of the same kind, for ``Downloader/replace(_:)-(Gate)`` and
  /// ``Downloader/removeGate(id:)``; the name by default.
  ///
  /// A pipeline with two gates, two admission policies or two sources of the same id is refused.
  var id: String { get }
  /// The settings of the stage, for the printed pipeline; empty by default.
  var summary: String { get }
  /// Adds the stage to the parts of a pipeline. Every kind of stage has an implementation.
  func contribute(to parts: inout PipelineParts)
}

extension Stage {
  /// The default: the type's name, without generic arguments.
  public var name: String {
    // Not `String(describing:)`, which looks for the protocols of each metatype among all conformances of the process.
    let full = _typeName(Self.self, qualified: false)
    return String(full.prefix { $0 != "<" })
  }

  /// The default: the name.
  public var id: String { name }

  /// The default: empty.
  public var summary: String { "" }

  /// Unavailable: the type conforms to `Stage` alone. Each kind of stage has an implementation of its own.
  @available(
    *, unavailable,
    message:
      "conform to the protocol of a kind of stage, not to Stage alone: Source, Storage, PostProcessor, UniversalPostProcessor, SchedulingPolicy, AdmissionPolicy, RatePolicy, SegmentPolicy, Gate, RetryPolicy, RequestInterceptor, LinkRefresher, Ledger or Observer"
  )
  public func contribute(to parts: inout PipelineParts) {}
}
