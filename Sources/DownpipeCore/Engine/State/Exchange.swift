internal import Foundation
internal import Synchronization

/// One exchange with the ledger, which saves outcomes and leases downloads in one commit.
///
/// Only one exchange is in progress at a time, and one that has failed is made again before any other; outcomes that arrive
/// meanwhile are part of the next one.
struct Exchange: Sendable {
  /// The ledger keeps it with its answer: the same exchange may be made again.
  let number: Int64
  /// The runs whose outcomes are saved, with the states to publish afterwards.
  let unsaved: [UnsavedRun]
  /// The lease; `nil` if no download may start.
  var request: LeaseRequest?
  /// The lease of the first attempt that had one: a download may have been leased by it.
  var first: LeaseRequest?
  /// Whether it was made before, and has failed.
  private(set) var isRepeated = false

  init(number: Int64, unsaved: [UnsavedRun], request: LeaseRequest?) {
    (self.number, self.unsaved, self.request) = (number, unsaved, request)
  }

  /// The same exchange, to be made again.
  func again(leasing request: LeaseRequest?) -> Exchange {
    var again = self
    (again.request, again.isRepeated) = (request, true)
    return again
  }

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
    let exchange: Exchange
    let result: Result<LedgerExchange, any Error>
    /// Whether the lease of the exchange was left out.
    let mustLease: Bool
    var unsaved: [UnsavedRun] { exchange.unsaved }
  }
}
