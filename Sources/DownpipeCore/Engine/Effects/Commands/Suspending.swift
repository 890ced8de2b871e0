// Suspending all downloads, and ending that.
extension Engine {
  /// Stops all runs, whose downloads wait again, and starts no download until ``unsuspend()`` is called.
  func suspend() async {
    // At once, although the ledger may not answer. A run that a lease in progress begins is stopped when it begins.
    decide(.suspended)
    let number = state.mode.suspensions
    let runs = try? await context.mailbox.call(for: [], isContinuation: true) { _ in
      // A later call wins.
      { state, _ in .over(state.mode.suspensions == number ? Array(state.slots.runs.values) : []) }
    }
    for run in runs ?? [] { try? await run.waitForEndUnlessCancelled() }
  }

  func unsuspend() async {
    decide(.suspensionEnds)
    let number = state.mode.suspensions
    // Suspended from the start, it has to rank now.
    let isFirst = !state.mode.isRanked
    if isFirst {
      do { try await rankOnce(isCancellable: false) } catch {
        decide(.ledgerFailed(DownloadError(error, as: .ledger, stage: context.ledgerName)))
      }
    }
    decide(.suspensionEnded(call: number, isFirst: isFirst))
  }
}

extension EngineState {
  mutating func suspend() {
    mode.isSuspended = true
    mode.suspensions += 1
    due.insert(.turn)
    reasons.isUrgent = true
    for run in slots.runs.values { run.stop(.suspend) }
  }

  mutating func unsuspend() {
    due.insert([.leases, .turn])
    mode.isSuspended = false
    reasons.isUrgent = true
    tidy()
  }
}
