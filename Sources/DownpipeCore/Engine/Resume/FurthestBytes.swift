internal import Synchronization

/// How far downloads that have failed ever were, so that bytes fetched a second time count as no progress. Bounded: what
/// does not fit in is judged by its last run alone.
final class FurthestBytes: Sendable {
  private static let capacity = 100_000
  private let bytes = Mutex<[DownloadID: Int64]>([:])

  /// How far a download ever was: at least as far as its run found it.
  func before(_ id: DownloadID, atLeast start: Int64) -> Int64 {
    bytes.withLock { max($0[id] ?? 0, start) }
  }

  /// Remembers how far a download is.
  func note(_ id: DownloadID, _ end: Int64) {
    bytes.withLock { bytes in
      guard bytes[id] != nil || bytes.count < Self.capacity else { return }
      bytes[id] = max(bytes[id] ?? 0, end)
    }
  }

  /// Forgets a download.
  func forget(_ id: DownloadID) {
    bytes.withLock { bytes in
      if !bytes.isEmpty { bytes[id] = nil }
    }
  }
}
