internal import Foundation
internal import Synchronization

/// The places that have sent wrong bytes, for each life of a download. They are not asked again while another place is
/// left, unless the download is restarted, or its request asks for another file: then other bytes may be right.
///
/// In memory: after a restart of the process a wrong place is asked once more. Bounded: when it is full, the places of
/// the download that came first are forgotten.
final class ExcludedPlaces: Sendable {
  private struct Exclusion {
    /// The request whose bytes were wrong.
    let request: DownloadRequest
    var places: [URL]
  }

  private static let capacity = 10_000
  private let exclusions = Mutex(OrderedTable<PartialKey, Exclusion>())

  /// The excluded places of a download, in the order in which they were excluded.
  func places(of record: DownloadRecord) -> [URL] {
    exclusions.withLock { exclusions in
      guard !exclusions.isEmpty, let exclusion = exclusions[Self.key(record)],
        !record.request.asksForAnotherFile(than: exclusion.request)
      else { return [] }
      return exclusion.places
    }
  }

  func insert(_ place: URL, of record: DownloadRecord) {
    let known = places(of: record)
    guard !known.contains(place) else { return }
    exclusions.withLock { exclusions in
      let key = Self.key(record)
      if exclusions.count >= Self.capacity, exclusions[key] == nil { exclusions.removeFirst() }
      exclusions[key] = Exclusion(request: record.request, places: known + [place])
    }
  }

  private static func key(_ record: DownloadRecord) -> PartialKey {
    PartialKey(id: record.id, generation: record.generation)
  }

  func forget(_ key: PartialKey) {
    exclusions.withLock { exclusions in
      if !exclusions.isEmpty { exclusions[key] = nil }
    }
  }
}
