internal import Synchronization

/// What removed records leave behind: files to delete and watchers to inform. It is a small part of the records, which
/// can be a million.
final class Leftovers: Sendable {
  struct State: Sendable {
    /// The partials, and the artifacts to delete.
    var files: [(key: PartialKey, artifact: StoredArtifact?)] = []
    /// The requests of watched downloads; of those that are not watched individually, a bounded number.
    var watched: [DownloadID: DownloadRequest] = [:]
  }

  private let state = Mutex(State())
  private let hub: EventHub
  private let individuals: Set<DownloadID>
  private let withFiles: Bool

  /// - Parameter withFiles: Whether the artifacts of finished downloads are deleted, too.
  init(of hub: EventHub, withFiles: Bool) {
    self.hub = hub
    self.withFiles = withFiles
    individuals = Set(hub.watchedDownloads)
  }

  func note(_ record: DownloadRecord) {
    state.withLock { state in
      let artifact = withFiles && record.phase == .finished ? record.steps.artifact : nil
      state.files.append((record.partialKey, artifact))
      let isWatched =
        individuals.contains(record.id) || (state.watched.count < LedgerBulkResult.mostIDs && hub.isWatched(record.id))
      if isWatched { state.watched[record.id] = record.request }
    }
  }

  /// Removes and returns everything.
  func taken() -> State {
    state.withLock { state in
      defer { state = State() }
      return state
    }
  }
}
