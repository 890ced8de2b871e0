internal import Synchronization

/// The downloads whose files were proved wrong after mirrors had brought parts of them. Their mirrors bring no more
/// parts, for the life of the downloader.
///
/// Bounded: when it is full, the download that came first is forgotten, and its mirrors are asked again.
final class DoubtedMirrors: Sendable {
  private static let capacity = 10_000
  private let ids = Mutex(OrderedTable<DownloadID, Void>())

  func contains(_ id: DownloadID) -> Bool { ids.withLock { !$0.isEmpty && $0[id] != nil } }

  func insert(_ id: DownloadID) {
    ids.withLock { ids in
      guard ids[id] == nil else { return }
      if ids.count >= Self.capacity { ids.removeFirst() }
      ids[id] = ()
    }
  }
}
