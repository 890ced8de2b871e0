// Reading from the ledger what has to be published.
extension EngineState {
  /// The number of records to read at a time.
  static let page = 1000

  /// Publishes what has changed, unless the ledger rests after it could not be read, and then answers callers; `nil` if
  /// there is nothing to publish.
  mutating func publishChanges() -> Job? {
    guard !unpublished.isEmpty, !(unpublished.mustWait && ledgerNeedsRest) else { return nil }
    let changes = unpublished
    unpublished = Unpublished()
    return publish(changes, changes.ids.filter { slots.runs[$0] == nil }[...])
  }

  private mutating func publish(_ changes: Unpublished, _ ids: ArraySlice<DownloadID>) -> Job? {
    guard !ids.isEmpty else {
      if changes.areIncomplete { add(.publish(.incomplete)) }
      if unpublished.mustWait { restLedger() }
      return answerCallers()
    }
    return Job { context, _ in
      await context.find(Array(ids.prefix(Self.page)))
    } then: { state, instant, found in
      guard let found else {
        // The events end with a shutdown.
        if !state.mode.isStopping {
          state.unpublished.add(changes, from: ids, for: state.hub)
          state.restLedger()
        }
        return state.answerCallers()
      }
      for record in found.records { state.publish(record, found.dependencies, at: instant) }
      // A damaged record is left out, and is not gone. It is not read again: the ledger need not rest, and a damaged record
      // stays damaged. If only this read has failed, observers read what they have missed.
      if found.areIncomplete { state.add(.publish(.incomplete)) }
      for id in found.missing {
        state.reasons.forget(id)
        state.add(.publish(changes.requests[id].map(Publication.removal) ?? .removalOf(id)))
      }
      return state.publish(changes, ids.dropFirst(Self.page))
    }
  }

  // MARK: Reasons

  /// Compares the reasons of waiting downloads with the published ones, if that is due.
  mutating func compareReasons(at instant: Instant) -> Job? {
    if mustFillReasons { fillReasons() }
    guard reasons.mustLook || mode.hasGateNews else { return nil }
    (reasons.mustLook, mode.hasGateNews) = (false, false)
    guard hub.isAnythingWatched else {
      reasons.forgetAll()
      return nil
    }
    let changed = takeChangedReasons(followingQueue: hub.isQueueFollowed, at: instant.now)
    publishLater(changed + reasons.unknown(of: hub.watchedDownloads))
    if reasons.isIncomplete, !changed.isEmpty { add(.publish(.incomplete)) }
    return publishDependents()
  }

  /// Publishes the downloads whose reason to wait has changed with the state of a dependency.
  private mutating func publishDependents() -> Job? {
    let ids = reasons.takeStale().filter { slots.runs[$0] == nil }
    guard !ids.isEmpty else { return nil }
    let told = reasons.told
    return Job { context, _ in
      try? await context.records(of: ids)
    } then: { state, instant, found in
      guard let found else {
        state.publishLater(ids)
        return nil
      }
      for record in found.records {
        if case .waiting(let reason) = state.state(of: record, found.dependencies, at: instant),
          told[record.id]?.reason == reason
        {
          continue
        }
        state.publish(record, found.dependencies, at: instant)
      }
      // Downloads that were removed.
      for id in Set(ids).subtracting(found.records.map(\.id)) { state.reasons.forget(id) }
      return nil
    }
  }
}
