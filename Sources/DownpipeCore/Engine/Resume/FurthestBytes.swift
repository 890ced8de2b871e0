internal import Synchronization

/// The furthest byte that each failed download has reached, so that bytes downloaded again do not count as progress.
///
/// Bounded: for downloads that do not fit, progress is judged by the last run alone.
final class FurthestBytes: Sendable {
  private static let capacity = 100_000
  private let bytes = Mutex<[DownloadID: Int64]>([:])

  /// The furthest byte of a download so far, which is at least `start`.
  func before(_ id: DownloadID, atLeast start: Int64) -> Int64 {
    bytes.withLock { max($0[id] ?? 0, start) }
  }

  func note(_ id: DownloadID, _ end: Int64) {
    bytes.withLock { bytes in
      guard bytes[id] != nil || bytes.count < Self.capacity else { return }
      bytes[id] = max(bytes[id] ?? 0, end)
    }
  }

  func forget(_ id: DownloadID) {
    bytes.withLock { bytes in
      if !bytes.isEmpty { bytes[id] = nil }
    }
  }
}
