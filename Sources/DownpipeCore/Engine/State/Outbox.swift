/// The outcomes that have to be saved in the ledger, and the ledger's failures.
struct Outbox: Sendable {
  /// The outcomes for the next exchange.
  private(set) var waiting: [Exchange.UnsavedRun] = []
  /// Whether an exchange is in progress.
  private(set) var isExchanging = false
  /// The number of consecutive failures of the ledger.
  private(set) var failures = 0
  private(set) var lastError: DownloadError?

  /// Whether every outcome has been saved.
  var isEmpty: Bool { waiting.isEmpty && !isExchanging }

  mutating func append(_ unsaved: Exchange.UnsavedRun) { waiting.append(unsaved) }

  /// Begins an exchange with the waiting outcomes.
  mutating func begin(_ request: LeaseRequest?) -> Exchange {
    defer { (waiting, isExchanging) = ([], true) }
    return Exchange(unsaved: waiting, request: request)
  }

  /// Ends the exchange after a success.
  mutating func succeeded() {
    isExchanging = false
    failures = 0
  }

  /// Ends the exchange after a failure: its outcomes wait again.
  mutating func failed(_ unsaved: [Exchange.UnsavedRun], _ error: DownloadError) {
    isExchanging = false
    waiting = unsaved + waiting
    noteFailure(error)
  }

  mutating func noteFailure(_ error: DownloadError) {
    failures += 1
    lastError = error
  }
}
