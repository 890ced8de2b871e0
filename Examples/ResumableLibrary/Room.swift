import Downpipe
import Synchronization

/// Holds back films that give way to others.
struct Room: AdmissionPolicy {
  private final class Films: Sendable {
    let held = Mutex<Set<DownloadID>>([])
  }

  private let films = Films()

  /// Holds a film back.
  /// - Returns: false when it gives way to somebody else already.
  func hold(_ id: DownloadID) -> Bool { films.held.withLock { $0.insert(id).inserted } }

  /// Lets it go on in its turn.
  func release(_ id: DownloadID) { films.held.withLock { _ = $0.remove(id) } }

  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    films.held.withLock { $0.contains(candidate.id) } ? .refused("gives way to one started by hand") : .admitted
  }
}
