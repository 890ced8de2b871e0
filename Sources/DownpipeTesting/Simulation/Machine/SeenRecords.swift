import DownpipeCore
import Synchronization

/// The ids that a ledger's removal has chosen.
final class SeenRecords: Sendable {
  private let state = Mutex<[DownloadID]>([])

  var ids: [DownloadID] { state.withLock { $0 } }

  func add(_ id: DownloadID) { state.withLock { $0.append(id) } }
}
