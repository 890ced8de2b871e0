// Publishing the states of downloads that do not run. Runs publish their own states.
//
// This is done in turns only, and so is everything that changes these states here. What is read from the ledger in a
// turn is still true when it is published.
extension EngineState {
  /// What is told to watchers.
  enum Publication: Sendable {
    case status(DownloadStatus)
    /// The status of a download whose reason to wait may have changed; only told to those who watch it by itself.
    case reason(DownloadStatus)
    case removal(DownloadRequest)
    /// The removal of a download whose request is not known.
    case removalOf(DownloadID)
    /// Downloads have changed; only told to those who watch all.
    case changes([DownloadID])
    /// More has changed than is told.
    case incomplete
    /// Waiting downloads may have other reasons. If only the queue has moved, they wait for a free slot as before.
    case reasons(isOfQueue: Bool)
  }

  var hub: EventHub { context.hub }

  // MARK: States

  func status(of record: DownloadRecord, _ dependencies: Dependencies = .unread, at instant: Instant) -> DownloadStatus
  {
    DownloadStatus(record: record, state: state(of: record, dependencies, at: instant), in: context.storage)
  }

  /// The statuses of records, or of their runs if they have started since the records were read.
  func statuses(of found: FoundRecords, at instant: Instant) -> [DownloadStatus] {
    found.records.map { slots.runs[$0.id]?.status ?? status(of: $0, found.dependencies, at: instant) }
  }

  func state(
    of record: DownloadRecord, _ dependencies: Dependencies = .unread, at instant: Instant
  ) -> DownloadState {
    switch record.phase {
    case .waiting: return .waiting(reason(for: record, dependencies, at: instant))
    case .transferring, .processing:
      // The runs of this owner are in the slots; others are of other owners.
      return record.owner == context.store.owner ? .transferring : .waiting(.elsewhere)
    case .paused: return .paused
    case .cancelled: return .cancelled
    case .failed:
      return .failed(record.error ?? DownloadError(.processing, "the reason was not recorded"))
    case .finished:
      let artifact = record.steps.artifact.map(context.storage.shownArtifact)
      return .finished(artifact ?? Artifact(kind: .file, location: .memory([]), name: ""))
    }
  }

  /// Why a waiting download waits, checked in the order of the checks for a lease.
  private func reason(
    for record: DownloadRecord, _ dependencies: Dependencies, at instant: Instant
  ) -> WaitingReason {
    if let reason = dependencies.reason(for: record) { return reason }
    if let due = record.notBefore, due > instant.date, let error = record.error {
      return WaitingReason(record.awaited, until: due, after: error)
    }
    return reason(for: record.candidate, at: instant.now)
  }

  /// Publishes the state of a download that does not run.
  ///
  /// - Parameters:
  ///   - isNew: Whether the download has just been added: not every watcher follows new downloads in the queue.
  ///   - isReason: Whether only its reason to wait may have changed.
  mutating func publish(
    _ record: DownloadRecord, _ dependencies: Dependencies = .unread, isNew: Bool = false, isReason: Bool = false,
    at instant: Instant
  ) {
    #if SABOTAGE
      if context.options.sabotage == .tellsNothing { return }
    #endif
    guard slots.runs[record.id] == nil, hub.isWatched(record.id) else { return }
    // It may be one whose removal is not over.
    if isReason, record.phase != .waiting { return }
    // A lease whose answer was lost: its run begins when the exchange is made again.
    if record.phase.isActive, record.owner == context.store.owner { return }
    let shown = state(of: record, dependencies, at: instant)
    if isNew, case .waiting(let reason) = shown, reason.isFreeSlot, !hub.isFollowedInQueue(record.id) { return }
    let status = DownloadStatus(record: record, state: shown, in: context.storage)
    add(.publish(isReason ? .reason(status) : .status(status)))
  }

  // MARK: Changes

  /// Notes what a job has changed.
  mutating func note(_ changes: Changes) {
    noteChange(of: changes.ids)
    for result in changes.transitions + changes.updates { noteChange(of: result) }
    for result in changes.transitions { waits.forget(result.ids) }
    for removed in changes.removed { noteRemoval(removed) }
    if changes.mustLookAgain { lookAgainAtLedger() }
    due.formUnion(changes.due)
    if changes.mustRest { restLedger() }
  }

  /// Notes that downloads have changed: their states are published in this turn, and others may have waited for them.
  mutating func noteChange(of ids: some Collection<DownloadID>) {
    guard !ids.isEmpty else { return }
    reasons.mayHaveChanged = true
    publishLater(ids)
  }

  /// Publishes the states of those downloads that do not run, later in this turn.
  /// - Parameter request: The last known request of a download that may have been removed.
  mutating func publishLater(_ ids: some Collection<DownloadID>, _ request: DownloadRequest? = nil) {
    guard !ids.isEmpty, hub.isAnythingWatched else { return }
    add(.publish(.changes(Array(ids))))
    for id in ids where hub.isStreamed(id) {
      // Those that are watched by themselves are bounded by their watchers.
      guard unpublished.count < LedgerBulkResult.mostIDs || hub.isFollowed(id) else { continue }
      unpublished.updateValue(request ?? unpublished[id] ?? nil, forKey: id)
    }
  }

  /// Looks at the ledger as after changes by others: a change has failed, and may have taken effect all the same.
  private mutating func lookAgainAtLedger() {
    due.insert([.others, .turn])
    add(.publish(.incomplete))
  }

  /// Notes the changes of a command, whose result may leave out ids.
  private mutating func noteChange(of result: LedgerBulkResult) {
    noteChange(of: result.ids)
    guard result.count > result.ids.count else { return }
    publishLater(hub.watchedDownloads)
    add(.publish(.incomplete))
  }

  private mutating func noteRemoval(_ removed: RemovedDownloads.Summary) {
    let watched = Set(removed.watched.map(\.id))
    // Their watchers came after the ledger had told of the removal, while the record could still be read.
    for id in removed.ids where !watched.contains(id) && hub.isFollowed(id) { add(.publish(.removalOf(id))) }
    for id in removed.ids {
      context.furthest.forget(id)
      unpublished[id] = nil
    }
    waits.forget(removed.ids)
    returning.remove(removed.ids)
    if removed.count > 0 { reasons.mayHaveChanged = true }
    for request in removed.watched { add(.publish(.removal(request))) }
    if removed.watched.count < removed.count { add(.publish(.incomplete)) }
    if removed.ids.count < removed.count { publishLater(hub.watchedDownloads) }
  }
}

/// Records of the ledger, with what they wait for.
struct FoundRecords: Sendable {
  let records: [DownloadRecord]
  let dependencies: Dependencies
  /// The ids that the ledger does not have.
  var missing: [DownloadID] = []
  /// Whether the ledger has not told of some.
  var areIncomplete = false
}
