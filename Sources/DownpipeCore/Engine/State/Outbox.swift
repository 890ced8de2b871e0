/// The outcomes that have to be saved in the ledger, and the ledger's failures.
struct Outbox: Sendable {
  /// The outcomes for the exchange after the next one, or for the next one if none has failed.
  private(set) var waiting: [Exchange.UnsavedRun] = []
  /// The exchange that has failed. It may have taken effect: it is made again, under its number, before any other.
  private(set) var failed: Exchange?
  /// The downloads that were added, or changed by an addition, since that exchange has failed.
  private(set) var changed: Set<DownloadID> = []
  /// Whether an exchange is in progress.
  private(set) var isExchanging = false
  /// The number of consecutive failures of the ledger.
  private(set) var failures = 0
  private(set) var lastError: DownloadError?
  private var lastNumber: Int64 = 0

  /// Whether every outcome has been saved, and every exchange answered.
  var isEmpty: Bool { waiting.isEmpty && failed == nil && !isExchanging }
  /// The outcomes of the next exchange.
  var next: [Exchange.UnsavedRun] { failed?.unsaved ?? waiting }
  /// The number of outcomes that have not been saved, without those of an exchange in progress.
  var count: Int { waiting.count + (failed?.unsaved.count ?? 0) }

  mutating func append(_ unsaved: Exchange.UnsavedRun) { waiting.append(unsaved) }

  /// Begins an exchange with the waiting outcomes, or the one that has failed again.
  mutating func begin(_ request: LeaseRequest?) -> Exchange {
    guard let failed else {
      defer { waiting = [] }
      return begin(waiting, request)
    }
    isExchanging = true
    return failed.again(leasing: request)
  }

  /// Begins an exchange of its own, when none has failed.
  mutating func begin(_ unsaved: [Exchange.UnsavedRun], _ request: LeaseRequest?) -> Exchange {
    isExchanging = true
    lastNumber += 1
    return Exchange(number: lastNumber, unsaved: unsaved, request: request)
  }

  /// Ends the exchange after a success.
  mutating func succeeded() {
    (isExchanging, failed, changed) = (false, nil, [])
    failures = 0
  }

  /// Ends the exchange after a failure.
  mutating func fail(_ exchange: Exchange, _ error: DownloadError) {
    isExchanging = false
    // Unless the ledger was not asked for anything.
    failed = exchange.unsaved.isEmpty && exchange.first == nil ? nil : exchange
    noteFailure(error)
  }

  mutating func note(changed ids: Set<DownloadID>) { if failed != nil { changed.formUnion(ids) } }

  mutating func noteFailure(_ error: DownloadError) {
    failures += 1
    lastError = error
  }
}
