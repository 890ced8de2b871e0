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

  /// - Parameters:
  ///   - request: The last known request of a download that may have been removed.
  ///   - hub: Knows whether the download has a watcher of its own: that one learns nothing from being told that more has
  ///     changed, and would wait for ever. The number of such downloads is bounded by that of the watchers.
  mutating func note(_ id: DownloadID, _ request: DownloadRequest? = nil, for hub: EventHub) {
    guard all.count < LedgerBulkResult.mostIDs || all.contains(id) || hub.isFollowed(id) else {
      return areIncomplete = true
    }
    all.insert(id)
    if let request { requests[id] = request }
  }

  /// Forgets downloads whose removal was published.
  mutating func forget(_ ids: [DownloadID]) {
    all.subtract(ids)
    for id in ids { requests[id] = nil }
  }

  /// Adds what could not be read.
  mutating func add(_ others: Unpublished, from ids: ArraySlice<DownloadID>, for hub: EventHub) {
    for id in ids { note(id, others.requests[id], for: hub) }
    areIncomplete = areIncomplete || others.areIncomplete
    mustWait = true
  }
}
