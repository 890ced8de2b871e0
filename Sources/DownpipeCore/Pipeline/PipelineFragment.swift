// What the type of a fragment says about the stages in it.

/// A mark in the type of a fragment.
public protocol Presence: Sendable {}
/// A mark that says: there for certain.
public protocol CertainPresence: Presence {}

/// There is a source.
public enum HasSource: CertainPresence {}
/// There is no source, or none for certain.
public enum NoSource: Presence {}
/// There is a storage.
public enum HasStorage: CertainPresence {}
/// There is no storage, or none for certain.
public enum NoStorage: Presence {}
/// There for certain when both branches of an `if` have it.
public enum Both<First: Presence, Second: Presence>: Presence {}
extension Both: CertainPresence where First: CertainPresence, Second: CertainPresence {}

/// A mark that says which steps a fragment has.
public protocol StepChain: Sendable {}
/// No step, or only steps that take and give anything.
public enum NoSteps: StepChain {}
/// Steps that take one form and give another.
public enum Steps<Input: ArtifactForm, Output: ArtifactForm>: StepChain {}
/// A mark that says: the steps give the form they take, so they may be left out or repeated.
public protocol FormKeepingChain: StepChain {}
extension NoSteps: FormKeepingChain {}
extension Steps: FormKeepingChain where Input == Output {}

/// Some stages of a pipeline, whose type says whether a source and a storage are among them and which
/// steps: what a ``StageGroup`` with more than policies gives.
///
/// ```swift
/// struct ToDisk: StageGroup {
///   var body: some PipelineFragment<HasSource, HasStorage, NoSteps> { HTTPSource(); FileStore("~/Downloads") }
/// }
/// ```
public protocol PipelineFragment<SourcePresence, StoragePresence, Chain>: Sendable {
  /// Whether there is a source.
  associatedtype SourcePresence: Presence
  /// Whether there is a storage.
  associatedtype StoragePresence: Presence
  /// Which steps there are.
  associatedtype Chain: StepChain
  /// Puts the stages where they belong.
  func contribute(to parts: inout PipelineParts)
}

/// Stages that the builder has put together. Its type arguments are marks only: the stages
/// themselves are erased as they come in.
public struct StageList<SourcePresence: Presence, StoragePresence: Presence, Chain: StepChain>: PipelineFragment {
  let parts: PipelineParts

  init(_ parts: PipelineParts) { self.parts = parts }

  init(contributing contribute: (inout PipelineParts) -> Void) {
    var parts = PipelineParts()
    contribute(&parts)
    self.parts = parts
  }

  init(_ first: some PipelineFragment, _ second: some PipelineFragment) {
    self.init { parts in
      first.contribute(to: &parts)
      second.contribute(to: &parts)
    }
  }

  init(all fragments: [some PipelineFragment]) {
    self.init { parts in
      for fragment in fragments { fragment.contribute(to: &parts) }
    }
  }

  /// Puts the stages where they belong.
  public func contribute(to other: inout PipelineParts) { other.append(parts) }
}

/// Stages that are neither source nor storage nor change an artifact's form can stand in for one stage,
/// which is what lets a group's body be `some Stage`.
extension StageList: Stage where SourcePresence == NoSource, StoragePresence == NoStorage, Chain == NoSteps {}

/// Stages under one name, to reuse.
///
/// ```swift
/// struct PoliteCrawler: StageGroup {
///   var body: some Stage {
///     Limits(concurrent: 32, perHost: 2)
///     Retry(.exponential(attempts: 8))
///   }
/// }
/// ```
/// A group that brings the source, the storage or steps that change the form says so: see ``PipelineFragment``.
public protocol StageGroup: Sendable {
  /// The type of the body.
  associatedtype Body: Sendable
  /// The stages.
  @StageGroupBuilder var body: Body { get }
}
