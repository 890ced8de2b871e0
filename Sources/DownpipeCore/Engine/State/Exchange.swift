internal import Foundation
internal import Synchronization

/// One exchange with the ledger, which saves outcomes and leases downloads in one commit.
///
/// Only one exchange is in progress at a time; outcomes that arrive meanwhile are part of the next one.
struct Exchange: Sendable {
  /// The runs whose outcomes are saved, with the states to publish afterwards.
  let unsaved: [UnsavedRun]
  /// The lease; `nil` if no download may start.
  let request: LeaseRequest?

  /// A run whose outcome is in its record, but has not been saved in the ledger.
  struct UnsavedRun: Sendable {
    let run: Run
    let state: DownloadState
    /// Whether the run failed for lack of disk space: the ledger may fail for the same reason.
    var isOutOfRoom: Bool {
      switch state {
      case .failed(let error), .waiting(.retry(_, let error)), .waiting(.missing(_, _, let error)):
        error.code == .noSpace
      default: false
      }
    }
  }

  /// The ledger's answer.
  struct Answer: Sendable {
    let unsaved: [UnsavedRun]
    let result: Result<LedgerExchange, any Error>
    /// The lease; `nil` if there was none, or it was left out.
    let lease: LeaseRequest?
    /// Whether the lease of the exchange was left out.
    let mustLease: Bool
    /// Whether a lease has failed: it may have taken effect all the same, if only the ledger's answer was lost.
    let hasFailedToLease: Bool

    /// The runs that end with this answer.
    func runsToEnd(isStopping: Bool) -> [Run] {
      switch result {
      case .success(let exchange): zip(unsaved, exchange.saved).filter(\.1).map(\.0.run)
      // The next start finds those that could not be saved.
      case .failure: isStopping ? unsaved.map(\.run) : []
      }
    }
  }
}
