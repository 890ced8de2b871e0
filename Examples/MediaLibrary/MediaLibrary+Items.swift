import Downpipe

// Adding, asking, and commands for all items.
extension MediaLibrary {
  /// Adds an item, or updates the item with its key.
  @discardableResult
  func add(_ item: Item) async throws -> Download { try await downloader.add(item.request) }

  /// Whether there is an item with the key.
  func contains(_ key: String) async throws -> Bool { try await downloader.contains(DownloadID(key)) }

  /// All items as copies, the earliest first.
  func items() async throws -> [DownloadStatus] { try await downloader.statuses(DownloadQuery(order: .arrival)) }

  /// The item that runs now; `nil` if none does.
  func running() async throws -> DownloadStatus? {
    try await downloader.statuses(DownloadQuery(phases: [.transferring, .processing])).first
  }

  /// The number of items in each phase.
  func counts() async throws -> [DownloadState.Phase: Int] { try await downloader.counts() }

  /// Starts all paused and failed items: the earliest at once, the rest wait.
  func startAll(_ which: DownloadFilter = .all) async throws { try await downloader.resumeAll(which) }

  /// Pauses all items. The bytes are kept.
  func pauseAll(_ which: DownloadFilter = .all) async throws { try await downloader.pauseAll(which) }

  /// Deletes all items with their files.
  func deleteAll(_ which: DownloadFilter = .all) async throws {
    try await downloader.removeAll(which, deletingFiles: true)
  }

  /// Calls back with all items, and then with those that have changed, as copies, at most once per interval; returns when the
  /// library is closed.
  func watch(every interval: Duration, _ changed: ([DownloadStatus]) -> Void) async {
    for await batch in downloader.changes(every: interval) {
      changed(batch.statuses.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) })
    }
  }
}

extension DownloadFilter {
  /// Selects the items of a user.
  static func user(_ name: String) -> DownloadFilter { .tag(MediaLibrary.tag(of: name)) }
}
