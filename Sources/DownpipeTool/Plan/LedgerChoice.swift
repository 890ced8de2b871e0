import Downpipe

/// Which downloads of a ledger a command takes.
enum LedgerChoice: Sendable, Hashable {
  case ids([DownloadID])
  case phases(Set<DownloadState.Phase>)
}
