// Reading from the ledger what has to be published.
extension EngineState {
  /// The number of records to read at a time.
  static let page = 1000

  /// Publishes what has changed, unless the ledger rests, and then answers callers; `nil` if there is nothing to publish.
  mutating func publishChanges() -> Job? {
    guard !unpublished.isEmpty, !ledgerNeedsRest else { return nil }
    for id in slots.runs.keys { unpublished[id] = nil }
    // In the order of the ids, which does not change from run to run.
    return publish(unpublished.keys.sorted()[...])
  }

  private mutating func publish(_ ids: ArraySlice<DownloadID>) -> Job? {
    guard !ids.isEmpty else { return answerCallers() }
    let page = Array(ids.prefix(Self.page))
    let requests = page.map { unpublished.removeValue(forKey: $0) ?? nil }
    return Job { context, _ in
      await context.find(page)
    } then: { state, instant, found in
      let known = Dictionary(zip(page, requests)) { $1 }
      guard let found else {
        // The events end with a shutdown.
        if !state.mode.isStopping {
          state.unpublished.merge(known) { $1 ?? $0 }
          state.restLedger()
        }
        return state.answerCallers()
      }
      for record in found.records { state.publish(record, found.dependencies, at: instant) }
      // A damaged record is left out, and is not gone. It is not read again: the ledger need not rest, and a damaged record
      // stays damaged. If only this read has failed, observers read what they have missed.
      if found.areIncomplete { state.add(.publish(.incomplete)) }
      for id in found.missing {
        let request = known[id] ?? nil
        state.add(.publish(request.map(Publication.removal) ?? .removalOf(id)))
      }
      return state.publish(ids.dropFirst(Self.page))
    }
  }

  /// Whether reasons to wait are told now.
  var mayTellReasons: Bool { reasons.isDue(whileBusy: slots.hasRuns) && mode.ledger == .used && !mode.isStopping }

  /// Tells that waiting downloads may have other reasons, if that is due, and reads those that are watched by themselves.
  mutating func tellReasons() -> Job? {
    let isBusy = slots.hasRuns
    guard mayTellReasons else { return nil }
    guard hub.isAnythingWatched else {
      reasons = ReasonNews()
      return nil
    }
    if reasons.mayHaveChanged { add(.publish(.reasons(isOfQueue: !reasons.isUrgent))) }
    let ids = reasons.take(of: hub.watchedDownloads, whileBusy: isBusy).filter { slots.runs[$0] == nil }
    guard !ids.isEmpty else { return nil }
    return Job { context, _ in
      try? await context.records(of: ids)
    } then: { state, instant, found in
      guard let found else {
        state.reasons.isUrgent = true
        state.restLedger()
        return nil
      }
      for record in found.records { state.publish(record, found.dependencies, isReason: true, at: instant) }
      return nil
    }
  }
}
