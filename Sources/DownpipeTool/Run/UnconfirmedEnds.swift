import Downpipe
import Synchronization

/// The downloads whose files may be incomplete, because nothing confirms where their bodies ended.
final class UnconfirmedEnds: Sendable {
  private let ids = Mutex<Set<DownloadID>>([])

  func contains(_ id: DownloadID) -> Bool { ids.withLock { $0.contains(id) } }

  func note(_ event: DownloadEvent) {
    guard case .refused(let error) = event.kind else { return }
    switch error.code {
    case .unconfirmedEnd: ids.withLock { _ = $0.insert(event.id) }
    // The file was fetched anew.
    case .comparedEnd: ids.withLock { _ = $0.remove(event.id) }
    default: break
    }
  }
}
