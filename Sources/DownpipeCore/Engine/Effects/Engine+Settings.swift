// Applying changed settings to the stages in use.
extension Engine {
  /// Changes the settings in one turn, so that concurrent changes do not overwrite each other.
  nonisolated func update<Value>(
    _ live: LiveSettings<Value>, excess: Excess, _ change: @escaping @Sendable (inout Value) throws -> Void
  ) async throws -> Value {
    let (value, isRanked) = try await context.mailbox.call(for: []) { _ in
      { _, _ in
        .job { context, _ in
          let old = live.pipeline
          // Another downloader may have changed them.
          let new = try live.changed(from: try await context.store.settings(), change)
          try await context.store.keep(settings: new.json)
          live.set(new.value, new.pipeline)
          return { state, instant in
            state.adopt(new.pipeline, insteadOf: old, excess: excess, at: instant)
            return .over((new.value, new.pipeline.ranking.name == old.ranking.name))
          }
        }
      }
    }
    // Ranking takes many turns; downloads are leased meanwhile. The last of concurrent changes decides.
    if !isRanked { try await replace(scheduling: live.pipeline.scheduling ?? Arrival()) }
    return value
  }
}

/// The order of arrival, when settings leave out the scheduling policy.
private struct Arrival: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank { Ranking.arrival.rank(context) }
}
