// Ranking the downloads of the ledger by the scheduling policy. It may take many transactions, so it is done beside the
// turns, and downloads are leased meanwhile.
extension Engine {
  /// Makes the ledger rank, unless this was done at the start: a downloader that was suspended from the start does it when
  /// it needs ranks. Callers at the same time wait for one ranking.
  ///
  /// - Parameter isCancellable: Whether cancelling the caller ends the wait; the ranking goes on.
  func rankOnce(isCancellable: Bool = true) async throws {
    while !state.mode.isRanked {
      try checkOpen()
      let ranking = ranking ?? beginRanking()
      if isCancellable { try await ranking.wait() } else { try await ranking.finish() }
    }
  }

  /// Begins to rank by the policy in use. The ledger gives up an earlier ranking.
  func beginRanking() -> RankingInProgress {
    let new = RankingInProgress()
    ranking = new
    begin { [ranking = pipeline.ranking] in await self.rank(by: ranking, new) }
    return new
  }

  private func rank(by policy: Ranking, _ progress: RankingInProgress) async {
    do {
      try await store.rank(by: policy)
      if ranking === progress { decide { state, _ in state.mode.isRanked = true } }
      progress.end(.success(()))
    } catch {
      // A shutdown ends it between two transactions.
      progress.end(.failure(state.mode.isStopping ? DownloadError.shutDown : error))
    }
    if ranking === progress { ranking = nil }
  }
}

/// A ranking that the engine performs, for which any number of callers wait.
final class RankingInProgress: Sendable {
  private let result = Monitor<Result<Void, any Error>?>(nil)

  func end(_ new: Result<Void, any Error>) { result.update { $0 = new } }

  /// - Throws: The errors of the ledger, and `CancellationError`.
  func wait() async throws {
    try await result.wait { $0 != nil }
    try result.value?.get()
  }

  /// Waits also if the caller is cancelled.
  func finish() async throws {
    await result.waitThroughCancellation { $0 != nil }
    try result.value?.get()
  }
}
