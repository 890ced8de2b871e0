// Suspending all downloads, and ending that.
extension Engine {
  /// Stops all runs, whose downloads wait again, and starts no download until ``unsuspend()`` is called.
  func suspend() async {
    // At once, although the ledger may not answer. A run that a lease in progress begins is stopped when it begins.
    let number = decide { state, _ in state.suspend() }
    let runs = try? await context.mailbox.call(for: [], isContinuation: true) { _ in
      // A later call wins.
      { state, _ in .over(state.mode.suspensions == number ? Array(state.slots.runs.values) : []) }
    }
    for run in runs ?? [] { try? await run.waitForEndUnlessCancelled() }
  }

  func unsuspend() async {
    let number = decide { state, _ in
      state.mode.suspensions += 1
      return state.mode.suspensions
    }
    if !state.mode.isRanked {
      // The downloader was suspended from the start, so the ranking and interrupted renames have to be done now.
      var failure: DownloadError?
      do { try await rankOnce(isCancellable: false) } catch {
        failure = DownloadError(error, as: .ledger, stage: context.ledgerName)
      }
      decide { state, _ in
        if let failure { state.outbox.noteFailure(failure) }
        state.due.insert(.renames)
      }
    }
    // A later call wins.
    decide { state, _ in if state.mode.suspensions == number { state.unsuspend() } }
  }
}

extension EngineState {
  /// - Returns: The number of the call.
  mutating func suspend() -> Int {
    if !mode.isStopping { mode.phase = .suspended }
    mode.suspensions += 1
    due.insert(.turn)
    reasons.isUrgent = true
    for run in slots.runs.values { run.stop(.suspend) }
    return mode.suspensions
  }

  mutating func unsuspend() {
    due.insert([.leases, .turn])
    if mode.isSuspended { mode.phase = .running }
    reasons.isUrgent = true
    tidy()
  }
}
