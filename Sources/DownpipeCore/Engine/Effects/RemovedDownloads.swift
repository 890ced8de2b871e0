internal import Synchronization

/// Notes what has to be told of records that are removed, of which there can be a million.
final class RemovedDownloads: Sendable {
  /// What has been noted.
  struct Summary: Sendable {
    /// The ids, at most 10,000.
    fileprivate(set) var ids: [DownloadID] = []
    /// The requests of watched downloads; of those that are not watched individually, a bounded number.
    fileprivate(set) var watched: [DownloadRequest] = []
    fileprivate(set) var count = 0
    /// Those whose files are to be deleted, at most 10,000.
    fileprivate(set) var withFiles: Set<DownloadID> = []
    /// Paths that runs have kept (``Deletions``).
    fileprivate(set) var kept: [String] = []
    /// Those that are not removed, because a rename comes first.
    fileprivate(set) var unsettled: [DownloadID] = []
  }

  private let state = Mutex(Summary())
  private let hub: EventHub

  init(of hub: EventHub) { self.hub = hub }

  var summary: Summary { state.withLock { $0 } }

  func noteUnsettled(_ id: DownloadID) { state.withLock { $0.unsettled.append(id) } }

  /// - Parameter kept: Those of its files that runs have kept.
  func note(_ record: DownloadRecord, hasFiles: Bool, kept: [String] = []) {
    state.withLock { state in
      state.count += 1
      state.kept += kept
      if state.ids.count < LedgerBulkResult.mostIDs {
        state.ids.append(record.id)
        if hasFiles { state.withFiles.insert(record.id) }
      }
      let isWatched =
        hub.isFollowed(record.id) || (state.watched.count < LedgerBulkResult.mostIDs && hub.isWatched(record.id))
      if isWatched { state.watched.append(record.request) }
    }
  }
}
