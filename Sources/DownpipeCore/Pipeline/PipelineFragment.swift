// Marker types that describe the stages of a fragment.

/// A marker type for the presence of a stage.
public protocol Presence: Sendable {}
/// A marker type for a stage that is certainly present.
public protocol CertainPresence: Presence {}
/// A marker type for a stage that is certainly present, and only once.
public protocol SinglePresence: CertainPresence {}

/// Marks a fragment that has a source.
public enum HasSource: CertainPresence {}
/// Marks a fragment that has no source, or not with certainty.
public enum NoSource: Presence {}
/// Marks a fragment that has a storage.
public enum HasStorage: SinglePresence {}
/// Marks a fragment that has two storages. A pipeline has one, so that it does not compile.
public enum TwoStorages: CertainPresence {}
/// Marks a fragment that has no storage, or not with certainty.
public enum NoStorage: Presence {}
/// Marks a stage that is certainly present if both branches of an `if` have it.
public enum Both<First: Presence, Second: Presence>: Presence {}
extension Both: CertainPresence where First: CertainPresence, Second: CertainPresence {}
extension Both: SinglePresence where First: SinglePresence, Second: SinglePresence {}

/// A marker type for the steps of a fragment.
public protocol StepChain: Sendable {}
/// Marks a fragment without steps, or only with steps that take any form.
public enum NoSteps: StepChain {}
/// Marks a fragment whose steps take one form and return another.
public enum Steps<Input: ArtifactForm, Output: ArtifactForm>: StepChain {}
/// A marker type for steps that return the form that they take, so that they may be left out or repeated.
public protocol FormKeepingChain: StepChain {}
extension NoSteps: FormKeepingChain {}
extension Steps: FormKeepingChain where Input == Output {}

/// A marker type for steps each of which takes the form that the one before returns.
public protocol FittingSteps: StepChain {}
extension NoSteps: FittingSteps {}
extension Steps: FittingSteps {}
/// A marker type for steps that fit and begin with a file, the form that a storage returns.
public protocol StepsFromFile: FittingSteps {}
extension NoSteps: StepsFromFile {}
extension Steps: StepsFromFile where Input == File {}
/// Marks a fragment with two neighbouring steps that do not fit: `Next` takes another form, file or directory, than
/// `First` returns. The compiler's message shows both.
public enum StepsThatDoNotFit<First, Next>: StepChain {}

/// A marker type for the first and the last step of a fragment, which messages of the compiler name.
public protocol EndSteps: Sendable {
  /// The type of the first step, or of the group that has it.
  associatedtype First
  /// The type of the last step, or of the group that has it.
  associatedtype Last
}
/// Marks a fragment without steps.
public enum NoEnds: EndSteps {
  /// There is no step.
  public typealias First = Never
  /// There is no step.
  public typealias Last = Never
}
/// Marks a fragment with steps.
public enum StepEnds<First, Last>: EndSteps {}

/// A part of a pipeline whose type describes whether it has a source and a storage, and which steps.
///
/// Use it for a ``StageGroup`` that has other stages than policies:
///
/// ```swift
/// struct ToDisk: StageGroup {
///   var body: some PipelineFragment<HasSource, HasStorage, NoSteps> { HTTPSource(); FileStore("~/Downloads") }
/// }
/// ```
public protocol PipelineFragment<SourcePresence, StoragePresence, Chain>: Sendable {
  /// Whether the fragment has a source.
  associatedtype SourcePresence: Presence
  /// Whether the fragment has a storage.
  associatedtype StoragePresence: Presence
  /// The forms that the fragment's steps take and return.
  associatedtype Chain: StepChain
  /// The first and the last step.
  associatedtype Ends: EndSteps
  /// Adds the stages to the parts of a pipeline.
  func contribute(to parts: inout PipelineParts)
}

/// A list of stages made by a builder. The type arguments only describe the stages, whose own types are erased.
public struct StageList<SourcePresence: Presence, StoragePresence: Presence, Chain: StepChain, Ends: EndSteps>:
  PipelineFragment
{
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

  /// Adds the stages to the parts of a pipeline.
  public func contribute(to other: inout PipelineParts) { other.append(parts) }
}

/// A list without source, storage and steps that change the form counts as one stage, so that the body of a group can
/// be `some Stage`.
extension StageList: Stage where SourcePresence == NoSource, StoragePresence == NoStorage, Chain == NoSteps {}

/// A reusable group of stages.
///
/// ```swift
/// struct PoliteCrawler: StageGroup {
///   var body: some Stage {
///     Limits(concurrent: 32, perHost: 2)
///     Retry(.exponential(attempts: 8))
///   }
/// }
/// ```
/// A group with a source, a storage or steps that change the form declares them in the type of its body; see
/// ``PipelineFragment``.
public protocol StageGroup: Sendable {
  /// The type of the body, `some Stage` or `some PipelineFragment`.
  associatedtype Body: Sendable
  /// The stages of the group.
  @StageGroupBuilder var body: Body { get }
}
