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
      if isCancellable { try await ranking.wait() } else { try await ranking.waitThroughCancellation() }
    }
  }

  /// Begins to rank by the policy in use. The ledger gives up an earlier ranking.
  func beginRanking() -> Completion {
    let new = Completion()
    ranking = new
    begin { [ranking = pipeline.ranking] in await self.rank(by: ranking, new) }
    return new
  }

  private func rank(by policy: Ranking, _ progress: Completion) async {
    do {
      try await store.rank(by: policy)
      if ranking === progress { decide(.ranked) }
      progress.complete()
    } catch {
      // A shutdown ends it between two transactions.
      progress.complete(.failure(state.mode.isStopping ? DownloadError.shutDown : error))
    }
    if ranking === progress { ranking = nil }
  }
}
