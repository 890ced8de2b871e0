@_spi(Ledger) import DownpipeCore
import DownpipeTesting

/// A ledger whose store a test can use without the engine's knowledge.
final class OpenLedger: Ledger {
  private let base: any Ledger
  private let opened = Watched<(any LedgerStore)?>(nil)

  init(_ base: any Ledger) { self.base = base }

  func open() async throws -> any LedgerStore {
    let store = try await base.open()
    opened.update { $0 = store }
    return store
  }

  /// Changes a record through the store, as another process does: the engine is not told.
  func change(_ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void) async throws {
    guard let store = opened.value, let record = try await store.record(id) else { return }
    _ = try await store.update(id, at: record.updatedAt, change)
  }

  /// Removes a record and its lease, as another process does that removes the download.
  func forget(_ id: DownloadID) async throws {
    _ = try await opened.value?.remove(.ids([id]))
  }
}
