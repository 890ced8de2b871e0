internal import Foundation

extension Job {
  /// Takes what a job has found.
  typealias Taking<Found> = @Sendable (inout EngineState, EngineState.Instant, Found) -> Job?

  /// - Parameters:
  ///   - body: What waits for the ledger. Its changes are noted before what it has found is taken.
  ///   - conclude: Takes what it has found, and may begin another job.
  init<Found: Sendable>(
    _ body: @escaping @Sendable (EngineContext, inout Changes) async -> Found, then conclude: @escaping Taking<Found>
  ) {
    perform = { context in
      var changes = Changes()
      let found = await body(context, &changes)
      return { [changes] state, instant in
        state.note(changes)
        return conclude(&state, instant, found)
      }
    }
  }
}

extension Result {
  init(catching body: () async throws(Failure) -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}

extension EngineContext {
  /// The record of a download at this location, as paths of other locations are meaningless here; `nil` if there is none.
  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    guard let record = try await store.record(id) else { return nil }
    return try record.location == nil || record.belongs(to: storage.location) ? record : nil
  }

  /// The record of a download at this location.
  /// - Throws: `.invalidRequest` if there is none.
  func existing(_ id: DownloadID) async throws -> DownloadRecord {
    guard let record = try await record(id) else { throw DownloadError.unknownDownload(id) }
    return record
  }

  /// The record of a download that is shown; `nil` if there is none.
  func shownRecord(_ id: DownloadID) async throws -> DownloadRecord? {
    try await store.record(id).flatMap { $0.belongs(to: locationForReading) ? $0 : nil }
  }

  /// The location of the downloads that are shown; `nil`, which shows those of all locations, while the storage cannot
  /// tell it.
  var locationForReading: String? { try? storage.location }

  func records(of ids: [DownloadID]) async throws -> FoundRecords {
    await withDependencies(try await store.records(of: ids))
  }

  /// Reads records with what they wait for, and finds out which are gone; `nil` if the ledger could not be read.
  func find(_ ids: [DownloadID]) async -> FoundRecords? {
    guard var found = try? await records(of: ids) else { return nil }
    let known = Set(found.records.map(\.id))
    for id in ids where !known.contains(id) {
      // A damaged record is left out, and is not gone.
      do { if try await store.record(id) == nil { found.missing.append(id) } } catch { found.areIncomplete = true }
    }
    return found
  }

  /// Reads what downloads wait for. Reads nothing unless one of them waits for another download.
  func withDependencies(_ records: [DownloadRecord]) async -> FoundRecords {
    let ids = records.reduce(into: Set<DownloadID>()) { if $1.phase == .waiting { $0.formUnion($1.waitsFor) } }
    guard !ids.isEmpty else { return FoundRecords(records: records, dependencies: .unread) }
    return FoundRecords(
      records: records, dependencies: Dependencies(try? await store.records(of: ids.sorted())))
  }
}
