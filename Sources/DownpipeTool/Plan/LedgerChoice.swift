import Downpipe

/// Which downloads of a ledger a command takes.
enum LedgerChoice: Sendable, Hashable {
  case ids([DownloadID])
  case phases(Set<DownloadState.Phase>)
  /// Those with a file in its place: finished ones, and ones whose file is to be fetched again.
  case published

  /// Whether a download is taken.
  func contains(_ status: DownloadStatus) -> Bool {
    switch self {
    case .ids(let ids): ids.contains(status.id)
    case .phases(let phases): phases.contains(status.state.phase)
    case .published:
      switch status.state.phase {
      case .finished: true
      case .waiting, .paused, .failed: status.earlierArtifact != nil
      case .transferring, .processing, .cancelled: false
      }
    }
  }
}
