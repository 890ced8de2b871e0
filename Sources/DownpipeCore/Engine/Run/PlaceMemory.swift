internal import Foundation
internal import Synchronization

/// What is known of the places of a download beyond its runs, for each of its lives.
///
/// Places that have sent wrong bytes are not asked again while another place is left, unless the download is restarted, or its
/// request asks for another file: then other bytes may be right. A run that is stopped for a change leaves to the next one which
/// places have brought the bytes on disk.
///
/// In memory: after a restart of the process a wrong place is asked once more. Bounded: when it is full, what came first is
/// forgotten.
final class PlaceMemory: Sendable {
  private struct Exclusion {
    /// The request whose bytes were wrong.
    let request: DownloadRequest
    var places: [URL]
  }

  private struct State {
    var exclusions = OrderedTable<PartialKey, Exclusion>()
    var origins = OrderedTable<PartialKey, Kept>()
  }

  /// Which places have brought the bytes of a partial, when a run was stopped.
  private struct Kept {
    let origins: ByteOrigins
    let partial: PartialKey
    /// The bytes that the download had fetched by then: if it has fetched more since, others may be on disk.
    let fetched: Int64
  }

  private static let capacity = 10_000
  private let state = Mutex(State())

  /// The excluded places of a download, in the order in which they were excluded.
  func excluded(of record: DownloadRecord) -> [URL] {
    state.withLock { state in
      guard !state.exclusions.isEmpty, let exclusion = state.exclusions[Self.key(record)],
        !record.request.asksForAnotherFile(than: exclusion.request)
      else { return [] }
      return exclusion.places
    }
  }

  func exclude(_ place: URL, of record: DownloadRecord) {
    let known = excluded(of: record)
    guard !known.contains(place) else { return }
    let exclusion = Exclusion(request: record.request, places: known + [place])
    state.withLock { Self.set(exclusion, for: Self.key(record), in: &$0.exclusions) }
  }

  /// Keeps which places have brought the bytes on disk, for the next run.
  /// - Parameter fetched: The number of bytes that the download has fetched by now.
  func keep(_ origins: ByteOrigins, of record: DownloadRecord, fetched: Int64) {
    guard !origins.isEmpty else { return }
    let kept = Kept(origins: origins, partial: record.partialKey, fetched: fetched)
    state.withLock { Self.set(kept, for: Self.key(record), in: &$0.origins) }
  }

  /// Removes what the run before has kept, and returns it if it is of the bytes on disk.
  func takeOrigins(of record: DownloadRecord) -> ByteOrigins? {
    let kept = state.withLock { $0.origins.isEmpty ? nil : $0.origins.removeValue(forKey: Self.key(record)) }
    guard let kept, kept.partial == record.partialKey, kept.fetched == record.bytesFetched else { return nil }
    return kept.origins
  }

  func forget(_ key: PartialKey) {
    state.withLock { state in
      if !state.exclusions.isEmpty { state.exclusions[key] = nil }
      if !state.origins.isEmpty { state.origins[key] = nil }
    }
  }

  private static func set<Value>(_ value: Value, for key: PartialKey, in table: inout OrderedTable<PartialKey, Value>) {
    if table.count >= capacity, table[key] == nil { table.removeFirst() }
    table[key] = value
  }

  private static func key(_ record: DownloadRecord) -> PartialKey {
    PartialKey(id: record.id, generation: record.generation)
  }
}
