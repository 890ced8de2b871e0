// Publishing the states of downloads that do not run. Runs publish their own states.
extension Engine {
  /// Publishes the state of a download that does not run, and follows its reason to wait.
  ///
  /// - Parameter isNew: Whether the download has just been added: not every watcher follows new downloads in the queue.
  func publish(_ record: DownloadRecord, _ dependencies: Dependencies = .unread, isNew: Bool = false) {
    guard hub.isWatched(record.id), options.sabotage != .tellsNothing else { return }
    // Leased, but not started yet: its run is about to publish that, after the ends of the runs that made room for it.
    if record.phase.isActive, record.owner == store.owner { return }
    let state = state(of: record, dependencies)
    reasons.note(record.id, record.candidate, state, waitsFor: record.waitsFor)
    // A dependency may have changed since it was read: the reason is compared once more.
    if record.phase == .waiting, !record.waitsFor.isEmpty { reasons.setStale(record.id) }
    if isNew, case .waiting(let reason) = state, reason.isFreeSlot, !hub.isFollowedInQueue(record.id) { return }
    hub.publish(stateOf: DownloadStatus(record: record, state: state, in: context.storage))
  }

  /// Notes that downloads have changed: what was read of them before must not be published, and the reasons of those that
  /// wait for them may have changed.
  func noteChange(of ids: some Collection<DownloadID>) {
    slots.noteChange(of: ids)
    reasons.noteChange(of: ids)
  }

  /// Notes the changes of a bulk command. With the most ids that a result has, others may have been left out.
  func noteBulkChange(of ids: [DownloadID]) {
    guard ids.count >= LedgerBulkResult.mostIDs else { return noteChange(of: ids) }
    slots.noteChangeOfAll()
    reasons.noteChangeOfAll()
  }

  /// Publishes the states of those downloads that do not run.
  func publishStates(of ids: [DownloadID]) async {
    guard !ids.isEmpty else { return }
    guard let (records, dependencies) = await readForPublishing(ids) else { return noteUnpublished(ids) }
    forgetReasons(of: ids, except: records)
    for record in records where slots.runs[record.id] == nil { publish(record, dependencies) }
  }

  /// Forgets the reasons of downloads that were removed while the ledger was read.
  func forgetReasons(of ids: [DownloadID], except found: [DownloadRecord]) {
    guard found.count < ids.count else { return }
    let found = Set(found.map(\.id))
    for id in ids where !found.contains(id) { reasons.forget(id) }
  }

  /// Publishes the states of individually watched downloads that do not run here: other owners may have changed them.
  /// - Parameter told: The downloads to leave out.
  func publishWatched(except told: Set<DownloadID> = []) async {
    let ids = hub.watchedDownloads.filter { slots.runs[$0] == nil && !told.contains($0) }
    guard !ids.isEmpty, let (records, dependencies) = await readForPublishing(ids) else { return }
    for record in records where slots.runs[record.id] == nil { publish(record, dependencies) }
    await finishEvents(of: ids, except: records)
  }

  /// Ends the events of downloads that were removed.
  /// - Parameter found: The records that the ledger has of them.
  func finishEvents(of ids: [DownloadID], except found: [DownloadRecord]) async {
    let found = Set(found.map(\.id))
    for id in ids where !found.contains(id) && slots.runs[id] == nil {
      // Read once more, because the download may just have been added.
      do {
        guard try await isGone(id) else { continue }
        reasons.noteRemoval(of: id)
        hub.publish(removalOf: id)
      } catch { noteUnpublished(CollectionOfOne(id)) }
    }
  }

  /// Notes downloads whose states could not be read from the ledger: the loop tries again.
  func noteUnpublished(_ ids: some Sequence<DownloadID>) {
    for id in ids where hub.isWatched(id) {
      guard unpublished.count < LedgerBulkResult.mostIDs else { return hub.publishIncomplete() }
      unpublished.insert(id)
    }
    if !unpublished.isEmpty { restLedger() }
  }

  /// Publishes the states that could not be read, unless the ledger rests after a failure.
  func publishLater() async {
    guard !unpublished.isEmpty, !ledgerNeedsRest, !mode.isStopping else { return }
    let ids = unpublished.sorted()
    unpublished = []
    guard let (records, dependencies) = await readForPublishing(ids) else { return noteUnpublished(ids) }
    for record in records where slots.runs[record.id] == nil { publish(record, dependencies) }
    await finishEvents(of: ids, except: records)
  }

  /// Whether the ledger has no record of a download that does not run here. `false` if the download has changed while the
  /// ledger was read: it may have been added.
  func isGone(_ id: DownloadID) async throws -> Bool {
    slots.beginReading([id])
    defer { slots.endReading([id]) }
    let start = slots.changes
    let record = try await store.record(id)
    return record == nil && slots.runs[id] == nil && !slots.hasChanged(id, since: start)
  }

  // MARK: Reasons

  /// Publishes each download whose reason to wait differs from the published one.
  func tellReasons() async {
    guard hub.isAnythingWatched else { return reasons.forgetAll() }
    await fillReasons()
    let changed = reasons.takeChanged(followingQueue: hub.isQueueFollowed) { reason(for: $0) }
    await publishStates(of: reasons.unknown(of: hub.watchedDownloads).filter { slots.runs[$0] == nil })
    if reasons.isIncomplete, !changed.isEmpty { hub.publishIncomplete() }
    for start in stride(from: 0, to: changed.count, by: 500) {
      await publishStates(of: Array(changed[start..<min(start + 500, changed.count)]))
    }
    await tellDependents()
  }

  /// Publishes new reasons after a short delay, in which free slots are filled again and most reasons change back.
  func lookAtReasons() async {
    for _ in 0..<5 {
      guard (try? await time.sleep(for: options.progressInterval, purpose: .reasons)) != nil else { break }
      if !outbox.isExchanging { break }
    }
    reasons.isLooking = false
    if reasons.mayHaveChanged { await tellReasons() }
  }

  /// Whether there is a watcher for whom the ledger has not been read.
  var mustFillReasons: Bool {
    let watchers = hub.watchersOfAll
    return watchers > 0 && reasons.filledFor != watchers
  }

  /// Starts to follow downloads that waited before there was a watcher. This is done when the watcher comes: a moment later
  /// there may be thousands of new downloads, which are known.
  func fillReasons() async {
    guard mustFillReasons else { return }
    let watchers = hub.watchersOfAll
    reasons.filledFor = watchers
    var query = DownloadQuery(phases: [.waiting], location: context.storage.location, order: .rank)
    query.limit = WaitingReasons.most
    reasons.beginReading()
    let found = try? await store.records(query)
    let removed = reasons.endReading()
    guard let records = found else { return }
    for record in records
    where slots.runs[record.id] == nil && reasons.told[record.id] == nil && !removed.contains(record.id) {
      // The published reason is not known; assume the initial one.
      if case .waiting(let reason) = state(of: record), reason.dependsOnOthers {
        reasons.note(record.id, record.candidate, .waiting(.turn), waitsFor: record.waitsFor)
        if !record.waitsFor.isEmpty { reasons.setStale(record.id) }
      }
    }
    if records.count == WaitingReasons.most { hub.publishIncomplete() }
    guard !records.isEmpty else { return }
    // The reasons may have been compared while the ledger was read.
    reasons.mayHaveChanged = true
    context.mailbox.wake()
  }
}
