import DownpipeCore
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

  /// Removes a record and its lease, as another process does that removes the download.
  func forget(_ id: DownloadID) async throws {
    _ = try await opened.value?.remove(.ids([id]))
  }
}
