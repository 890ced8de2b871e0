/// What ``PipelineBuilder`` and ``StageGroupBuilder`` have in common: statements, and how they join.
///
/// Takes stages, groups, `if`, `if`/`else` and `switch` with different types, `for`, `#available` and `let`.
/// A source or a storage inside an `if` without `else`, or inside `for`, does not count as being there.
public protocol StageListBuilder {}

extension StageListBuilder {
  // MARK: Stages, erased as they come in

  /// A source.
  public static func buildExpression(_ stage: some Source) -> StageList<HasSource, NoStorage, NoSteps> {
    StageList(contributing: stage.contribute(to:))
  }
  /// A storage.
  public static func buildExpression(_ stage: some Storage) -> StageList<NoSource, HasStorage, NoSteps> {
    StageList(contributing: stage.contribute(to:))
  }
  /// A step.
  public static func buildExpression<Step: PostProcessor>(
    _ stage: Step
  ) -> StageList<NoSource, NoStorage, Steps<Step.Input, Step.Output>> {
    StageList(contributing: stage.contribute(to:))
  }
  /// Any other stage.
  @_disfavoredOverload
  public static func buildExpression(_ stage: some Stage) -> StageList<NoSource, NoStorage, NoSteps> {
    StageList(contributing: stage.contribute(to:))
  }
  /// A group of policies.
  @_disfavoredOverload
  public static func buildExpression<Group: StageGroup>(
    _ group: Group
  ) -> StageList<NoSource, NoStorage, NoSteps> where Group.Body: Stage {
    StageList(contributing: group.body.contribute(to:))
  }
  /// A group whose type says what is in it.
  public static func buildExpression<Group: StageGroup>(
    _ group: Group
  ) -> StageList<Group.Body.SourcePresence, Group.Body.StoragePresence, Group.Body.Chain>
  where Group.Body: PipelineFragment {
    StageList(contributing: group.body.contribute(to:))
  }

  // MARK: Statements

  /// An empty block.
  public static func buildBlock() -> StageList<NoSource, NoStorage, NoSteps> { StageList(PipelineParts()) }

  /// The first statement.
  public static func buildPartialBlock<First: PipelineFragment>(
    first: First
  ) -> StageList<First.SourcePresence, First.StoragePresence, First.Chain> {
    StageList(all: [first])
  }

  /// `if` and `switch`: one of the branches.
  public static func buildEither<First: PipelineFragment, Second: PipelineFragment>(
    first: First
  ) -> Branches<First, Second> { Branches(first) }
  /// `else`: the other branch.
  public static func buildEither<First: PipelineFragment, Second: PipelineFragment>(
    second: Second
  ) -> Branches<First, Second> { Branches(second) }

  /// `if` without `else`.
  public static func buildOptional<List: PipelineFragment>(_ list: List?) -> Optionally<List>
  where List.Chain: FormKeepingChain { Optionally(list) }

  /// `if` without `else`, with steps that change the form: refused.
  @available(
    *, unavailable,
    message:
      "steps inside an `if` without `else` must give the form they take, since they may be left out: add an `else`"
  )
  @_disfavoredOverload
  public static func buildOptional<List: PipelineFragment>(_ list: List?) -> Optionally<List> { Optionally(list) }

  /// `for`.
  public static func buildArray<List: PipelineFragment>(
    _ lists: [List]
  ) -> StageList<NoSource, NoStorage, List.Chain> where List.Chain: FormKeepingChain { StageList(all: lists) }

  /// `for`, with steps that change the form: refused.
  @available(
    *, unavailable, message: "steps inside a `for` must give the form they take, since they are repeated"
  )
  @_disfavoredOverload
  public static func buildArray<List: PipelineFragment>(
    _ lists: [List]
  ) -> StageList<NoSource, NoStorage, List.Chain> { StageList(all: lists) }

  /// `if #available`: the marks name no stage's type, so nothing has to be erased.
  public static func buildLimitedAvailability<List: PipelineFragment>(
    _ list: List
  ) -> StageList<List.SourcePresence, List.StoragePresence, List.Chain> { StageList(all: [list]) }
}

/// Puts a pipeline together, and refuses at compile time what is none.
@resultBuilder
public enum PipelineBuilder: StageListBuilder {
  /// A pipeline.
  public static func buildFinalResult<S: CertainPresence, T: CertainPresence>(
    _ list: StageList<S, T, NoSteps>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// A pipeline whose first step takes a file.
  public static func buildFinalResult<S: CertainPresence, T: CertainPresence, Output>(
    _ list: StageList<S, T, Steps<File, Output>>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// A first step that takes something else: refused.
  @available(*, unavailable, message: "the first step of a pipeline takes a File, which is what a storage gives")
  public static func buildFinalResult<S: CertainPresence, T: CertainPresence, Chain>(
    _ list: StageList<S, T, Chain>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// No source: refused.
  @available(
    *, unavailable,
    message:
      "this pipeline has no source: add one, such as HTTPSource(); one inside an `if` without `else`, or a `for`, may be left out and does not count"
  )
  public static func buildFinalResult<S, T: CertainPresence, Chain>(
    _ list: StageList<S, T, Chain>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// No storage: refused.
  @available(
    *, unavailable,
    message:
      "this pipeline has no storage: add one, such as FileStore(\"~/Downloads\"); one inside an `if` without `else`, or a `for`, may be left out and does not count"
  )
  public static func buildFinalResult<S: CertainPresence, T, Chain>(
    _ list: StageList<S, T, Chain>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }

  /// Neither: refused.
  @available(
    *, unavailable,
    message: "this pipeline has no source and no storage: add both, such as HTTPSource() and FileStore(\"~/Downloads\")"
  )
  public static func buildFinalResult<S, T, Chain>(
    _ list: StageList<S, T, Chain>
  ) -> PipelineStages { PipelineStages(parts: list.parts) }
}

/// Puts the stages of a ``StageGroup`` together.
@resultBuilder
public enum StageGroupBuilder: StageListBuilder {}

/// One of two branches; its type says what both have in common.
public struct Branches<First: PipelineFragment, Second: PipelineFragment>: Sendable {
  private let parts: PipelineParts

  init(_ branch: some PipelineFragment) {
    var parts = PipelineParts()
    branch.contribute(to: &parts)
    self.parts = parts
  }

  /// Puts the stages where they belong.
  public func contribute(to other: inout PipelineParts) { other.append(parts) }
}

extension Branches: PipelineFragment where First.Chain == Second.Chain {
  /// A source for certain when both branches have one.
  public typealias SourcePresence = Both<First.SourcePresence, Second.SourcePresence>
  /// A storage for certain when both branches have one.
  public typealias StoragePresence = Both<First.StoragePresence, Second.StoragePresence>
  /// The steps, of the same forms in both branches.
  public typealias Chain = First.Chain
}

/// Stages that may be left out: neither a source nor a storage among them counts as being there.
public struct Optionally<List: PipelineFragment>: PipelineFragment {
  /// None for certain.
  public typealias SourcePresence = NoSource
  /// None for certain.
  public typealias StoragePresence = NoStorage
  /// The steps, which keep the form.
  public typealias Chain = List.Chain

  private let list: List?

  init(_ list: List?) { self.list = list }

  /// Puts the stages where they belong.
  public func contribute(to other: inout PipelineParts) { list?.contribute(to: &other) }
}
