/// A part of a pipeline.
///
/// Stages are immutable values that describe; what belongs to one run lives in the run. Do not
/// conform to `Stage` alone: conform to the kind of stage it is, such as ``Source`` or ``Gate``.
/// A type that is two kinds at once writes ``contribute(to:)`` itself.
public protocol Stage: Sendable {
  /// The name in messages and in the printed pipeline: the type's name unless the stage says otherwise.
  var name: String { get }
  /// What tells the stage from others of its kind, for ``Downloader/replace(_:)-(Gate)`` and
  /// ``Downloader/removeGate(id:)``: the name unless the stage says otherwise. A pipeline with two gates, two admission
  /// policies or two sources of one id is refused.
  var id: String { get }
  /// What the stage is set to, for the printed pipeline; empty when there is nothing to say.
  var summary: String { get }
  /// Puts the stage where it belongs. Every kind of stage has this already.
  func contribute(to parts: inout PipelineParts)
}

extension Stage {
  /// The type's name, without generic arguments.
  public var name: String {
    let full = String(describing: Self.self)
    return String(full.prefix { $0 != "<" })
  }

  /// The name.
  public var id: String { name }

  /// Nothing.
  public var summary: String { "" }
}
