internal import Synchronization

/// The downloads whose files were proved wrong after mirrors had brought parts of them. Their mirrors bring no more
/// parts, for the life of the downloader.
///
/// Bounded: when it is full, any other download is forgotten, whose mirrors are asked again.
final class DoubtedMirrors: Sendable {
  private static let capacity = 10_000
  private let ids = Mutex<Set<DownloadID>>([])

  func contains(_ id: DownloadID) -> Bool { ids.withLock { !$0.isEmpty && $0.contains(id) } }

  func insert(_ id: DownloadID) {
    ids.withLock { ids in
      if ids.count >= Self.capacity { ids.removeFirst() }
      ids.insert(id)
    }
  }
}
