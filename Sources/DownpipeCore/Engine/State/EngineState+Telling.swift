// Publishing the states of downloads that do not run. Runs publish their own states.
//
// This is done in turns only, and so is everything that changes these states here. What is read from the ledger in a
// turn is still true when it is published.
extension EngineState {
  /// What is told to watchers.
  enum Publication: Sendable {
    case status(DownloadStatus)
    case removal(DownloadRequest)
    /// The removal of a download whose request is not known.
    case removalOf(DownloadID)
    /// More has changed than is told.
    case incomplete
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

  /// Publishes the state of a download that does not run, and follows its reason to wait.
  ///
  /// - Parameter isNew: Whether the download has just been added: not every watcher follows new downloads in the queue.
  mutating func publish(
    _ record: DownloadRecord, _ dependencies: Dependencies = .unread, isNew: Bool = false, at instant: Instant
  ) {
    guard slots.runs[record.id] == nil, hub.isWatched(record.id), context.options.sabotage != .tellsNothing
    else { return }
    // A lease whose answer was lost; it is released.
    if record.phase.isActive, record.owner == context.store.owner { return }
    let shown = state(of: record, dependencies, at: instant)
    reasons.note(record.id, record.candidate, shown, waitsFor: record.waitsFor)
    if isNew, case .waiting(let reason) = shown, reason.isFreeSlot, !hub.isFollowedInQueue(record.id) { return }
    add(.publish(.status(DownloadStatus(record: record, state: shown, in: context.storage))))
  }

  // MARK: Changes

  /// Notes what a job has changed.
  mutating func note(_ changes: Changes) {
    noteChange(of: changes.ids)
    for result in changes.transitions + changes.updates { noteChange(of: result) }
    for result in changes.transitions { waits.forget(result.ids) }
    for selection in changes.uncertain { noteUncertain(selection) }
    for removed in changes.removed { noteRemoval(removed) }
    for removed in changes.maybeRemoved { noteUncertainRemoval(removed) }
    if changes.mayLease { mode.mayLease = true }
    if changes.mayHaveDelayed { waits.mayHaveDelayed = true }
    if changes.mustFinishRenaming { mode.mustFinishRenaming = true }
    if changes.mustRest { restLedger() }
  }

  /// Notes that downloads have changed: their states are published in this turn, and the reasons of those that wait for
  /// them are compared.
  mutating func noteChange(of ids: some Collection<DownloadID>) {
    reasons.noteChange(of: ids)
    publishLater(ids)
  }

  /// Publishes the states of those downloads that do not run, later in this turn.
  mutating func publishLater(_ ids: some Collection<DownloadID>) {
    guard !ids.isEmpty, hub.isAnythingWatched else { return }
    for id in ids where hub.isWatched(id) { unpublished.note(id, for: hub) }
  }

  /// Notes the changes of a command, whose result may leave out ids.
  private mutating func noteChange(of result: LedgerBulkResult) {
    noteChange(of: result.ids)
    guard result.count > result.ids.count else { return }
    reasons.noteChangeOfAll()
    publishLater(hub.watchedDownloads)
    add(.publish(.incomplete))
  }

  /// Notes downloads that a failed command may have changed.
  private mutating func noteUncertain(_ selection: LedgerSelection) {
    switch selection {
    case .ids(let ids): noteChange(of: ids)
    case .matching:
      noteChange(of: hub.watchedDownloads)
      add(.publish(.incomplete))
    }
    waitForLedger()
  }

  private mutating func noteRemoval(_ removed: RemovedDownloads.Summary) {
    let watched = Set(removed.watched.map(\.id))
    for page in removed.pages {
      let ids = page.keys.map(\.id)
      // Their watchers came after the ledger had told of the removal, while the record could still be read.
      for id in ids where !watched.contains(id) && hub.isFollowed(id) { add(.publish(.removalOf(id))) }
      for id in ids {
        reasons.forget(id)
        context.furthest.forget(id)
      }
      reasons.noteChange(of: ids)
      unpublished.forget(ids)
      waits.forget(ids)
    }
    for request in removed.watched { add(.publish(.removal(request))) }
    if removed.watched.count < removed.count { add(.publish(.incomplete)) }
  }

  /// Notes downloads that a failed command may have removed.
  private mutating func noteUncertainRemoval(_ removed: RemovedDownloads.Summary) {
    for page in removed.pages { waits.forget(page.keys.map(\.id)) }
    for request in removed.watched { unpublished.note(request.id, request, for: hub) }
    waitForLedger()
  }

  /// Lets the ledger rest before it is read for what has to be published.
  private mutating func waitForLedger() {
    guard !unpublished.isEmpty else { return }
    unpublished.mustWait = true
    restLedger()
  }

  // MARK: Reasons

  /// Whether there is a watcher for whom the ledger has not been read.
  var mustFillReasons: Bool {
    let watchers = hub.watchersOfAll
    return watchers > 0 && reasons.filledFor != watchers && !mode.fillsReasons && !mode.isStopping
  }

  /// Lets the reasons be read again, after a failure. What is asked for each time may be too much for the ledger.
  mutating func readReasonsLater(at instant: Instant) {
    add(.publish(.incomplete))
    let pause = Duration.seconds(1) * (1 << min(reasons.failuresToRead, 8))
    reasons.failuresToRead += 1
    set(.reading, after: pause, at: instant)
  }

  /// Follows waiting downloads that the ledger had a moment ago.
  mutating func follow(_ records: [DownloadRecord], for watchers: Int, at instant: Instant) {
    mode.fillsReasons = false
    mode.mustTakeTurn = true
    let changed = reasons.endReading()
    reasons.failuresToRead = 0
    reasons.filledFor = watchers
    for record in records where changed?.contains(record.id) == false {
      guard slots.runs[record.id] == nil, reasons.told[record.id] == nil else { continue }
      // The published reason is not known; assume the initial one.
      if case .waiting(let reason) = state(of: record, at: instant), reason.dependsOnOthers {
        reasons.note(record.id, record.candidate, .waiting(.turn), waitsFor: record.waitsFor)
        if !record.waitsFor.isEmpty { reasons.setStale(record.id) }
      }
    }
    if records.count == WaitingReasons.most || changed == nil { add(.publish(.incomplete)) }
    if !records.isEmpty { reasons.mayHaveChanged = true }
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
