/// The statements that ``PipelineBuilder`` and ``StageGroupBuilder`` accept, and how they are joined.
///
/// A block may contain stages, groups, `if`, `if`/`else` and `switch` with different types, `for`, `#available` and
/// `let`. A source or a storage inside an `if` without `else`, or inside a `for`, does not count as present.
public protocol StageListBuilder {}

extension StageListBuilder {
  // MARK: Stages, erased as they come in

  /// Accepts a source.
  public static func buildExpression(_ stage: some Source) -> StageList<HasSource, NoStorage, NoSteps, NoEnds> {
    StageList(contributing: stage.contribute(to:))
  }
  /// Accepts a storage.
  public static func buildExpression(_ stage: some Storage) -> StageList<NoSource, HasStorage, NoSteps, NoEnds> {
    StageList(contributing: stage.contribute(to:))
  }
  /// Accepts a step.
  public static func buildExpression<Step: PostProcessor>(
    _ stage: Step
  ) -> StageList<NoSource, NoStorage, Steps<Step.Input, Step.Output>, StepEnds<Step, Step>> {
    StageList(contributing: stage.contribute(to:))
  }
  /// Accepts any other stage.
  @_disfavoredOverload
  public static func buildExpression(_ stage: some Stage) -> StageList<NoSource, NoStorage, NoSteps, NoEnds> {
    StageList(contributing: stage.contribute(to:))
  }
  /// Accepts a group of policies.
  @_disfavoredOverload
  public static func buildExpression<Group: StageGroup>(
    _ group: Group
  ) -> StageList<NoSource, NoStorage, NoSteps, NoEnds> where Group.Body: Stage {
    StageList(contributing: group.body.contribute(to:))
  }
  /// Accepts a group whose type describes its stages.
  public static func buildExpression<Group: StageGroup>(
    _ group: Group
  ) -> StageList<
    Group.Body.SourcePresence, Group.Body.StoragePresence, Group.Body.Chain, StepEnds<Group, Group>
  >
  where Group.Body: PipelineFragment {
    StageList(contributing: group.body.contribute(to:))
  }

  // MARK: Statements

  /// Accepts an empty block.
  public static func buildBlock() -> StageList<NoSource, NoStorage, NoSteps, NoEnds> { StageList(PipelineParts()) }

  /// Accepts the first statement.
  public static func buildPartialBlock<First: PipelineFragment>(
    first: First
  ) -> StageList<First.SourcePresence, First.StoragePresence, First.Chain, First.Ends> {
    StageList(all: [first])
  }

  /// Accepts the first branch of an `if` with `else`, or of a `switch`.
  public static func buildEither<First: PipelineFragment, Second: PipelineFragment>(
    first: First
  ) -> Branches<First, Second> { Branches(first) }
  /// Accepts the other branch of an `if` with `else`, or of a `switch`.
  public static func buildEither<First: PipelineFragment, Second: PipelineFragment>(
    second: Second
  ) -> Branches<First, Second> { Branches(second) }

  /// Accepts an `if` without `else`.
  public static func buildOptional<List: PipelineFragment>(_ list: List?) -> Optionally<List>
  where List.Chain: FormKeepingChain { Optionally(list) }

  /// Unavailable: an `if` without `else` around steps that change the form.
  @available(
    *, unavailable,
    message:
      "steps inside an `if` without `else` must return the form that they take, because they may be skipped: add an `else`"
  )
  @_disfavoredOverload
  public static func buildOptional<List: PipelineFragment>(_ list: List?) -> Optionally<List> { Optionally(list) }

  /// Accepts a `for`.
  public static func buildArray<List: PipelineFragment>(
    _ lists: [List]
  ) -> StageList<NoSource, NoStorage, List.Chain, List.Ends> where List.Chain: FormKeepingChain {
    StageList(all: lists)
  }

  /// Unavailable: a `for` around steps that change the form.
  @available(
    *, unavailable, message: "steps inside a `for` must return the form that they take, because they are repeated"
  )
  @_disfavoredOverload
  public static func buildArray<List: PipelineFragment>(
    _ lists: [List]
  ) -> StageList<NoSource, NoStorage, List.Chain, List.Ends> { StageList(all: lists) }

  /// Accepts an `if #available`. The marker types name no stage's type, so nothing has to be erased.
  public static func buildLimitedAvailability<List: PipelineFragment>(
    _ list: List
  ) -> StageList<List.SourcePresence, List.StoragePresence, List.Chain, List.Ends> { StageList(all: [list]) }
}

/// A result builder for pipelines, which rejects incomplete pipelines at compile time.
@resultBuilder
public enum PipelineBuilder: StageListBuilder {
  /// Returns a pipeline without steps, or whose first step takes a file.
  public static func buildFinalResult<S: CertainPresence, T: SinglePresence, Chain: StepsFromFile, E>(
    _ list: StageList<S, T, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the first step does not take a file.
  @available(*, unavailable, message: "the first step of a pipeline takes a File, the form that a storage returns")
  public static func buildFinalResult<S: CertainPresence, T: SinglePresence, Chain: FittingSteps, E>(
    _ list: StageList<S, T, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the pipeline has two storages.
  @available(*, unavailable, message: "this pipeline has two storages, and a download has one place: keep one of them")
  public static func buildFinalResult<S: CertainPresence, Chain: FittingSteps, E>(
    _ list: StageList<S, TwoStorages, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the pipeline has two storages, and no source.
  @available(
    *, unavailable,
    message: "this pipeline has two storages and no source: keep one storage, and add a source, such as HTTPSource()"
  )
  public static func buildFinalResult<S, Chain: FittingSteps, E>(
    _ list: StageList<S, TwoStorages, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the pipeline has no source.
  @available(
    *, unavailable,
    message:
      "this pipeline has no source: add one, such as HTTPSource(); one inside an `if` without `else`, or a `for`, may be left out and does not count"
  )
  public static func buildFinalResult<S, T: CertainPresence, Chain: FittingSteps, E>(
    _ list: StageList<S, T, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the pipeline has no storage.
  @available(
    *, unavailable,
    message:
      "this pipeline has no storage: add one, such as FileStore(\"~/Downloads\"); one inside an `if` without `else`, or a `for`, may be left out and does not count"
  )
  public static func buildFinalResult<S: CertainPresence, T, Chain: FittingSteps, E>(
    _ list: StageList<S, T, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Unavailable: the pipeline has neither a source nor a storage.
  @available(
    *, unavailable,
    message: "this pipeline has no source and no storage: add both, such as HTTPSource() and FileStore(\"~/Downloads\")"
  )
  public static func buildFinalResult<S, T, Chain: FittingSteps, E>(
    _ list: StageList<S, T, Chain, E>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }
}

/// A result builder for the stages of a ``StageGroup``.
@resultBuilder
public enum StageGroupBuilder: StageListBuilder {}

/// The stages of one of two branches. The type describes what both branches have.
public struct Branches<First: PipelineFragment, Second: PipelineFragment>: Sendable {
  private let parts: PipelineParts

  init(_ branch: some PipelineFragment) {
    var parts = PipelineParts()
    branch.contribute(to: &parts)
    self.parts = parts
  }

  /// Adds the stages to the parts of a pipeline.
  public func contribute(to other: inout PipelineParts) { other.append(parts) }
}

extension Branches: PipelineFragment where First.Chain == Second.Chain {
  /// Certain if both branches have a source.
  public typealias SourcePresence = Both<First.SourcePresence, Second.SourcePresence>
  /// Certain if both branches have a storage.
  public typealias StoragePresence = Both<First.StoragePresence, Second.StoragePresence>
  /// The steps, which have the same forms in both branches.
  public typealias Chain = First.Chain
  /// The first and the last step of the first branch.
  public typealias Ends = First.Ends
}

/// Stages that may be left out. A source or storage among them does not count as present.
public struct Optionally<List: PipelineFragment>: PipelineFragment {
  /// No source is certain.
  public typealias SourcePresence = NoSource
  /// No storage is certain.
  public typealias StoragePresence = NoStorage
  /// The steps, which keep the form.
  public typealias Chain = List.Chain
  /// The first and the last step.
  public typealias Ends = List.Ends

  private let list: List?

  init(_ list: List?) { self.list = list }

  /// Adds the stages, if present, to the parts of a pipeline.
  public func contribute(to other: inout PipelineParts) { list?.contribute(to: &other) }
}
