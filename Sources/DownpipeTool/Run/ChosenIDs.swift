import Downpipe
import Synchronization

/// The downloads of this command, which grow while the list of URLs is read. Others may wait in the same ledger: they
/// belong to another command.
final class ChosenIDs: Sendable {
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
