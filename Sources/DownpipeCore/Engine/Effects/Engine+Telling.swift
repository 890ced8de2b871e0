internal import Foundation

// Publishing the states of downloads that do not run. Runs publish their own states.
//
// This is done in turns only, and so is everything that changes these states here. What is read from the ledger in a
// turn is still true when it is published.
extension Engine {
  /// Publishes the state of a download that does not run, and follows its reason to wait.
  ///
  /// - Parameter isNew: Whether the download has just been added: not every watcher follows new downloads in the queue.
  func publish(_ record: DownloadRecord, _ dependencies: Dependencies = .unread, isNew: Bool = false) {
    guard state.slots.runs[record.id] == nil, hub.isWatched(record.id), options.sabotage != .tellsNothing
    else { return }
    // A lease whose answer was lost; it is released.
    if record.phase.isActive, record.owner == store.owner { return }
    let shown = self.state(of: record, dependencies)
    state.reasons.note(record.id, record.candidate, shown, waitsFor: record.waitsFor)
    if isNew, case .waiting(let reason) = shown, reason.isFreeSlot, !hub.isFollowedInQueue(record.id) { return }
    hub.publish(stateOf: DownloadStatus(record: record, state: shown, in: context.storage))
  }

  /// Notes that downloads have changed: their states are published in this turn, and the reasons of those that wait for
  /// them are compared.
  func noteChange(of ids: some Collection<DownloadID>) {
    state.reasons.noteChange(of: ids)
    publishLater(ids)
  }

  /// Publishes the states of those downloads that do not run, later in this turn.
  func publishLater(_ ids: some Collection<DownloadID>) {
    guard !ids.isEmpty, hub.isAnythingWatched else { return }
    for id in ids where hub.isWatched(id) { state.unpublished.note(id) }
  }

  /// Notes the changes of a bulk command, whose result may leave out ids.
  func noteChange(of result: LedgerBulkResult) {
    noteChange(of: result.ids)
    guard result.count > result.ids.count else { return }
    state.reasons.noteChangeOfAll()
    publishLater(hub.watchedDownloads)
    hub.publishIncomplete()
  }

  /// Notes downloads that a failed command may have changed.
  func noteUncertain(_ selection: LedgerSelection) {
    switch selection {
    case .ids(let ids): noteChange(of: ids)
    case .matching:
      noteChange(of: hub.watchedDownloads)
      hub.publishIncomplete()
    }
    waitForLedger()
  }

  /// Lets the ledger rest before it is read for what has to be published.
  func waitForLedger() {
    guard !state.unpublished.isEmpty else { return }
    state.unpublished.mustWait = true
    restLedger()
  }

  /// Publishes what has changed, unless the ledger rests after it could not be read.
  func publishChanges() async {
    guard !state.unpublished.isEmpty, !(state.unpublished.mustWait && state.ledgerNeedsRest) else { return }
    let changes = state.unpublished
    state.unpublished = Unpublished()
    let ids = changes.ids.filter { state.slots.runs[$0] == nil }
    for start in stride(from: 0, to: ids.count, by: Self.page) {
      let page = Array(ids[start..<min(start + Self.page, ids.count)])
      guard let records = await publishStates(of: page) else {
        // The events end with a shutdown.
        guard !state.mode.isStopping else { return }
        state.unpublished.add(changes, from: ids[start...])
        return restLedger()
      }
      let found = Set(records.map(\.id))
      for id in page where !found.contains(id) {
        // A damaged record is left out, and is not gone.
        do {
          guard try await store.record(id) == nil else { continue }
        } catch {
          state.unpublished.add(changes, from: [id])
          continue
        }
        state.reasons.forget(id)
        if let request = changes.requests[id] { hub.publish(removalOf: request) } else { hub.publish(removalOf: id) }
      }
    }
    if changes.areIncomplete { hub.publishIncomplete() }
    if state.unpublished.mustWait { restLedger() }
  }

  /// The number of records to read at a time.
  static let page = 1000

  /// Publishes the states of downloads, together with what they wait for.
  /// - Returns: Their records; `nil` if the ledger could not be read.
  private func publishStates(
    of ids: [DownloadID], where isTold: (DownloadRecord, DownloadState) -> Bool = { _, _ in true }
  ) async -> [DownloadRecord]? {
    guard let records = try? await store.records(of: ids) else { return nil }
    let dependencies = await dependencies(of: records)
    for record in records where isTold(record, state(of: record, dependencies)) { publish(record, dependencies) }
    return records
  }

  // MARK: Reasons

  /// Compares the reasons of waiting downloads with the published ones, if that is due.
  func compareReasons() async {
    if mustFillReasons { decide { state, _ in state.fillReasons() } }
    guard state.reasons.mustLook || state.mode.hasGateNews else { return }
    (state.reasons.mustLook, state.mode.hasGateNews) = (false, false)
    guard hub.isAnythingWatched else { return state.reasons.forgetAll() }
    let changed = state.takeChangedReasons(followingQueue: hub.isQueueFollowed, at: time.now)
    publishLater(changed + state.reasons.unknown(of: hub.watchedDownloads))
    if state.reasons.isIncomplete, !changed.isEmpty { hub.publishIncomplete() }
    await tellDependents()
  }

  /// Publishes the downloads whose reason to wait has changed with the state of a dependency.
  private func tellDependents() async {
    let ids = state.reasons.takeStale().filter { state.slots.runs[$0] == nil }
    guard !ids.isEmpty else { return }
    let told = state.reasons.told
    let records = await publishStates(of: ids) { record, state in
      if case .waiting(let reason) = state { told[record.id]?.reason != reason } else { true }
    }
    guard let records else { return publishLater(ids) }
    forgetReasons(of: ids, except: records)
  }

  /// Forgets the reasons of downloads that were removed.
  private func forgetReasons(of ids: [DownloadID], except found: [DownloadRecord]) {
    guard found.count < ids.count else { return }
    let found = Set(found.map(\.id))
    for id in ids where !found.contains(id) { state.reasons.forget(id) }
  }

  /// Whether there is a watcher for whom the ledger has not been read.
  private var mustFillReasons: Bool {
    let watchers = hub.watchersOfAll
    return watchers > 0 && state.reasons.filledFor != watchers && !state.mode.fillsReasons && !state.mode.isStopping
  }

  /// Starts to follow downloads that waited before there was a watcher. This is done when the watcher comes: a moment later
  /// there may be thousands of new downloads, which are known. It is done beside the turns: in a ledger with millions of
  /// downloads it may take a while, and nothing else waits for what only watchers are told.
  func fillReasons() async {
    let watchers = hub.watchersOfAll
    var query = DownloadQuery(phases: [.waiting], location: context.storage.location, order: .rank)
    query.limit = WaitingReasons.most
    do {
      let records = try await store.records(query)
      state.reasons.failuresToRead = 0
      follow(records, for: watchers)
    } catch {
      hub.publishIncomplete()
      // Then the next turn begins again. What is asked for each time may be too much for the ledger.
      let pause = Duration.seconds(1) * (1 << min(state.reasons.failuresToRead, 8))
      state.reasons.failuresToRead += 1
      return decide { $0.set(.reading, after: pause, at: $1) }
    }
    state.mode.fillsReasons = false
    context.mailbox.wake()
  }

  /// Follows waiting downloads that the ledger had a moment ago.
  private func follow(_ records: [DownloadRecord], for watchers: Int) {
    let changed = state.reasons.endReading()
    state.reasons.filledFor = watchers
    for record in records where changed?.contains(record.id) == false {
      guard state.slots.runs[record.id] == nil, state.reasons.told[record.id] == nil else { continue }
      // The published reason is not known; assume the initial one.
      if case .waiting(let reason) = self.state(of: record), reason.dependsOnOthers {
        state.reasons.note(record.id, record.candidate, .waiting(.turn), waitsFor: record.waitsFor)
        if !record.waitsFor.isEmpty { state.reasons.setStale(record.id) }
      }
    }
    if records.count == WaitingReasons.most || changed == nil { hub.publishIncomplete() }
    if !records.isEmpty { state.reasons.mayHaveChanged = true }
  }
}
