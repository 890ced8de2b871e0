/// Joining of statements: which stages the joined list certainly has, and which steps.
///
/// There is one overload for each combination, because Swift has no type-level "or": a certain presence on the left is
/// kept, otherwise the right one counts, and two certain storages are too many. `NoSteps` is the neutral element of
/// chains. Two chains fit if the left one returns the form that the right one takes.
extension StageListBuilder {
  // MARK: Neither has steps

  /// Joins two fragments: neither has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, NoSteps, NoEnds>
  where A.Chain == NoSteps, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: neither has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, NoSteps, NoEnds>
  where A.SourcePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: neither has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, NoSteps, NoEnds>
  where A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: neither has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, NoSteps, NoEnds>
  where A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps {
    StageList(accumulated, next)
  }

  /// Joins two fragments: neither has steps; each has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, TwoStorages, NoSteps, NoEnds>
  where A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps {
    StageList(accumulated, next)
  }

  /// Joins two fragments: neither has steps; each has a storage, and the left one a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, TwoStorages, NoSteps, NoEnds>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence,
    A.Chain == NoSteps, B.Chain == NoSteps
  { StageList(accumulated, next) }

  // MARK: The right one has steps

  /// Joins two fragments: the right one has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>, B.Ends>
  where A.Chain == NoSteps, B.Chain == Steps<I, O> { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>, B.Ends>
  where A.SourcePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O> { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>, B.Ends>
  where A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O> { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>, B.Ends>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O>
  { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; each has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, TwoStorages, Steps<I, O>, B.Ends>
  where
    A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O>
  { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; each has a storage, and the left one a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, TwoStorages, Steps<I, O>, B.Ends>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence,
    A.Chain == NoSteps, B.Chain == Steps<I, O>
  { StageList(accumulated, next) }

  // MARK: The left one has steps

  /// Joins two fragments: the left one has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>, A.Ends>
  where A.Chain == Steps<I, O>, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>, A.Ends>
  where A.SourcePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>, A.Ends>
  where A.StoragePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>, A.Ends>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps
  { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; each has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, TwoStorages, Steps<I, O>, A.Ends>
  where
    A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps
  { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; each has a storage, and the left one a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, TwoStorages, Steps<I, O>, A.Ends>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence,
    A.Chain == Steps<I, O>, B.Chain == NoSteps
  { StageList(accumulated, next) }

  // MARK: Both have steps, which fit

  /// Joins two fragments: both have steps, which fit.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where A.Chain == Steps<I, M>, B.Chain == Steps<M, O> { StageList(accumulated, next) }

  /// Joins two fragments: both have steps, which fit; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where A.SourcePresence: CertainPresence, A.Chain == Steps<I, M>, B.Chain == Steps<M, O> {
    StageList(accumulated, next)
  }

  /// Joins two fragments: both have steps, which fit; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where A.StoragePresence: CertainPresence, A.Chain == Steps<I, M>, B.Chain == Steps<M, O> {
    StageList(accumulated, next)
  }

  /// Joins two fragments: both have steps, which fit; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == Steps<I, M>,
    B.Chain == Steps<M, O>
  { StageList(accumulated, next) }

  /// Joins two fragments: both have steps, which fit; each has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, TwoStorages, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where
    A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence, A.Chain == Steps<I, M>,
    B.Chain == Steps<M, O>
  { StageList(accumulated, next) }

  /// Joins two fragments: both have steps, which fit; each has a storage, and the left one a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, TwoStorages, Steps<I, O>, StepEnds<A.Ends.First, B.Ends.Last>>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, B.StoragePresence: CertainPresence,
    A.Chain == Steps<I, M>, B.Chain == Steps<M, O>
  { StageList(accumulated, next) }

  // MARK: Steps that do not fit

  /// Joins two fragments whose steps do not fit. The pipeline does not compile, and the message names both steps.
  @_disfavoredOverload
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, N, O>(
    accumulated: A, next: B
  ) -> StageList<HasSource, HasStorage, StepsThatDoNotFit<A.Ends.Last, B.Ends.First>, NoEnds>
  where A.Chain == Steps<I, M>, B.Chain == Steps<N, O> { StageList(accumulated, next) }

  /// Joins two fragments: two steps of the left one do not fit.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, First, Next>(
    accumulated: A, next: B
  ) -> StageList<HasSource, HasStorage, StepsThatDoNotFit<First, Next>, NoEnds>
  where A.Chain == StepsThatDoNotFit<First, Next> { StageList(accumulated, next) }
}
