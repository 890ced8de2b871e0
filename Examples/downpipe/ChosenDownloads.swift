import Downpipe
import Synchronization

/// Admits the downloads of this command only. Others may wait in the same ledger: they belong to another command,
/// which may have meant another folder, and `get` does not have to wait for them.
struct ChosenDownloads: AdmissionPolicy {
  /// The ids, which grow while the list of URLs is read.
  final class IDs: Sendable {
    private let bits = Mutex(Set<UInt64>())

    /// Chooses a download.
    /// - Returns: whether it is new.
    func insert(_ identity: DownloadIdentity) -> Bool { bits.withLock { $0.insert(identity.bits).inserted } }

    /// Whether a download is chosen.
    func contains(_ id: DownloadID) -> Bool {
      guard let identity = DownloadIdentity(id) else { return false }
      return bits.withLock { $0.contains(identity.bits) }
    }
  }

  /// The ids.
  let ids: IDs

  var summary: String { "those of this command" }

  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    ids.contains(candidate.id) ? .admitted : .refused("another command has asked for it; “downpipe resume” goes on")
  }
}
