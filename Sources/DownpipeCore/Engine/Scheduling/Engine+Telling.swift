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
    guard slots.runs[record.id] == nil, hub.isWatched(record.id), options.sabotage != .tellsNothing else { return }
    // A lease whose answer was lost; it is released.
    if record.phase.isActive, record.owner == store.owner { return }
    let state = state(of: record, dependencies)
    reasons.note(record.id, record.candidate, state, waitsFor: record.waitsFor)
    if isNew, case .waiting(let reason) = state, reason.isFreeSlot, !hub.isFollowedInQueue(record.id) { return }
    hub.publish(stateOf: DownloadStatus(record: record, state: state, in: context.storage))
  }

  /// Notes that downloads have changed: their states are published in this turn, and the reasons of those that wait for
  /// them are compared.
  func noteChange(of ids: some Collection<DownloadID>) {
    reasons.noteChange(of: ids)
    publishLater(ids)
  }

  /// Publishes the states of those downloads that do not run, later in this turn.
  func publishLater(_ ids: some Collection<DownloadID>) {
    guard !ids.isEmpty, hub.isAnythingWatched else { return }
    for id in ids where hub.isWatched(id) { unpublished.note(id) }
  }

  /// Notes the changes of a bulk command, whose result may leave out ids.
  func noteChange(of result: LedgerBulkResult) {
    noteChange(of: result.ids)
    guard result.count > result.ids.count else { return }
    reasons.noteChangeOfAll()
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
    guard !unpublished.isEmpty else { return }
    unpublished.mustWait = true
    restLedger()
  }

  /// Publishes what has changed, unless the ledger rests after it could not be read.
  func publishChanges() async {
    guard !unpublished.isEmpty, !(unpublished.mustWait && ledgerNeedsRest) else { return }
    let changes = unpublished
    unpublished = Unpublished()
    let ids = changes.ids.filter { slots.runs[$0] == nil }
    for start in stride(from: 0, to: ids.count, by: Self.page) {
      let page = Array(ids[start..<min(start + Self.page, ids.count)])
      guard let records = await publishStates(of: page) else {
        // The events end with a shutdown.
        guard !mode.isStopping else { return }
        unpublished.add(changes, from: ids[start...])
        return restLedger()
      }
      let found = Set(records.map(\.id))
      for id in page where !found.contains(id) {
        reasons.forget(id)
        if let request = changes.requests[id] { hub.publish(removalOf: request) } else { hub.publish(removalOf: id) }
      }
    }
    if changes.areIncomplete { hub.publishIncomplete() }
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
    if mustFillReasons { await fillReasons() }
    guard reasons.mustLook || mode.hasGateNews else { return }
    (reasons.mustLook, mode.hasGateNews) = (false, false)
    guard hub.isAnythingWatched else { return reasons.forgetAll() }
    let changed = reasons.takeChanged(followingQueue: hub.isQueueFollowed) { reason(for: $0) }
    publishLater(changed + reasons.unknown(of: hub.watchedDownloads))
    if reasons.isIncomplete, !changed.isEmpty { hub.publishIncomplete() }
    await tellDependents()
  }

  /// Publishes the downloads whose reason to wait has changed with the state of a dependency.
  private func tellDependents() async {
    let ids = reasons.takeStale().filter { slots.runs[$0] == nil }
    guard !ids.isEmpty else { return }
    let told = reasons.told
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
    for id in ids where !found.contains(id) { reasons.forget(id) }
  }

  /// Lets the reasons be compared after a short delay, in which free slots are filled again and most reasons change back.
  func lookAtReasons() async {
    for _ in 0..<5 {
      guard (try? await time.sleep(for: options.progressInterval, purpose: .reasons)) != nil else { break }
      if !outbox.isExchanging { break }
    }
    (reasons.isLooking, reasons.mustLook) = (false, reasons.mayHaveChanged)
    context.mailbox.wake()
  }

  /// Whether there is a watcher for whom the ledger has not been read.
  private var mustFillReasons: Bool {
    let watchers = hub.watchersOfAll
    return watchers > 0 && reasons.filledFor != watchers
  }

  /// Starts to follow downloads that waited before there was a watcher. This is done when the watcher comes: a moment later
  /// there may be thousands of new downloads, which are known.
  private func fillReasons() async {
    reasons.filledFor = hub.watchersOfAll
    var query = DownloadQuery(phases: [.waiting], location: context.storage.location, order: .rank)
    query.limit = WaitingReasons.most
    guard let records = try? await store.records(query) else { return }
    for record in records where slots.runs[record.id] == nil && reasons.told[record.id] == nil {
      // The published reason is not known; assume the initial one.
      if case .waiting(let reason) = state(of: record), reason.dependsOnOthers {
        reasons.note(record.id, record.candidate, .waiting(.turn), waitsFor: record.waitsFor)
        if !record.waitsFor.isEmpty { reasons.setStale(record.id) }
      }
    }
    if records.count == WaitingReasons.most { hub.publishIncomplete() }
    if !records.isEmpty { reasons.mayHaveChanged = true }
  }
}

/// Downloads whose states have changed and have not been published.
struct Unpublished: Sendable {
  private var all: Set<DownloadID> = []
  /// The last known requests of downloads that may have been removed.
  private(set) var requests: [DownloadID: DownloadRequest] = [:]
  /// Whether more have changed than are noted.
  private(set) var areIncomplete = false
  /// Whether the ledger could not be read: this is repeated when it has rested.
  var mustWait = false

  var isEmpty: Bool { all.isEmpty && !areIncomplete }
  var count: Int { all.count }
  /// In the order of the ids, which does not change from run to run.
  var ids: [DownloadID] { all.sorted() }

  mutating func note(_ id: DownloadID) {
    if all.count < LedgerBulkResult.mostIDs { all.insert(id) } else if !all.contains(id) { areIncomplete = true }
  }

  /// Notes a download that may have been removed.
  mutating func note(_ request: DownloadRequest) {
    note(request.id)
    requests[request.id] = request
  }

  /// Forgets downloads whose removal was published.
  mutating func forget(_ ids: [DownloadID]) {
    all.subtract(ids)
    for id in ids { requests[id] = nil }
  }

  /// Adds what could not be read.
  mutating func add(_ others: Unpublished, from ids: ArraySlice<DownloadID>) {
    all.formUnion(ids)
    requests.merge(others.requests.filter { all.contains($0.key) }) { $1 }
    areIncomplete = areIncomplete || others.areIncomplete
    mustWait = true
  }
}
