/// How statements follow each other: what the joined list has for certain, and which steps it has.
///
/// One overload for each combination, since Swift has no type-level "or": a presence that is certain
/// on the left stays; otherwise the right one counts. `NoSteps` is the neutral element of chains, and
/// two chains fit when the left one gives what the right one takes.
extension StageListBuilder {
  // MARK: Neither has steps

  /// Joins two fragments: neither has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, NoSteps> where A.Chain == NoSteps, B.Chain == NoSteps {
    StageList(accumulated, next)
  }

  /// Joins two fragments: neither has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, NoSteps>
  where A.SourcePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: neither has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, NoSteps>
  where A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: neither has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, NoSteps>
  where A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == NoSteps {
    StageList(accumulated, next)
  }

  // MARK: The right one has steps

  /// Joins two fragments: the right one has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>> where A.Chain == NoSteps, B.Chain == Steps<I, O> {
    StageList(accumulated, next)
  }

  /// Joins two fragments: the right one has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>>
  where A.SourcePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O> { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>>
  where A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O> { StageList(accumulated, next) }

  /// Joins two fragments: the right one has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == NoSteps, B.Chain == Steps<I, O>
  { StageList(accumulated, next) }

  // MARK: The left one has steps

  /// Joins two fragments: the left one has steps.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>> where A.Chain == Steps<I, O>, B.Chain == NoSteps {
    StageList(accumulated, next)
  }

  /// Joins two fragments: the left one has steps; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>>
  where A.SourcePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>>
  where A.StoragePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps { StageList(accumulated, next) }

  /// Joins two fragments: the left one has steps; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == Steps<I, O>, B.Chain == NoSteps
  { StageList(accumulated, next) }

  // MARK: Both have steps, which fit

  /// Joins two fragments: both have steps, which fit.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, B.StoragePresence, Steps<I, O>>
  where A.Chain == Steps<I, M>, B.Chain == Steps<M, O> { StageList(accumulated, next) }

  /// Joins two fragments: both have steps, which fit; the left one has a source.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, B.StoragePresence, Steps<I, O>>
  where A.SourcePresence: CertainPresence, A.Chain == Steps<I, M>, B.Chain == Steps<M, O> {
    StageList(accumulated, next)
  }

  /// Joins two fragments: both have steps, which fit; the left one has a storage.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<B.SourcePresence, A.StoragePresence, Steps<I, O>>
  where A.StoragePresence: CertainPresence, A.Chain == Steps<I, M>, B.Chain == Steps<M, O> {
    StageList(accumulated, next)
  }

  /// Joins two fragments: both have steps, which fit; the left one has both.
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>>
  where
    A.SourcePresence: CertainPresence, A.StoragePresence: CertainPresence, A.Chain == Steps<I, M>,
    B.Chain == Steps<M, O>
  { StageList(accumulated, next) }

  // MARK: Steps that do not fit

  /// Refuses two steps that do not fit.
  @available(
    *, unavailable,
    message: "these steps do not fit: the second takes another form (File or Directory) than the first gives"
  )
  @_disfavoredOverload
  public static func buildPartialBlock<A: PipelineFragment, B: PipelineFragment, I, M, N, O>(
    accumulated: A, next: B
  ) -> StageList<A.SourcePresence, A.StoragePresence, Steps<I, O>>
  where A.Chain == Steps<I, M>, B.Chain == Steps<N, O> { StageList(accumulated, next) }
}
