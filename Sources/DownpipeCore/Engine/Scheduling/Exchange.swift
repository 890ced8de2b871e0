internal import Foundation
internal import Synchronization

/// One exchange with the ledger, which saves outcomes and leases downloads in one commit.
///
/// Only one exchange is in progress at a time; outcomes that arrive meanwhile are part of the next one.
struct Exchange: Sendable {
  /// The runs whose outcomes are saved, with the states to publish afterwards.
  let settling: [Settling]
  /// The lease; `nil` if no download may start.
  let request: LeaseRequest?

  /// A run whose outcome is in its record, but has not been saved in the ledger.
  struct Settling: Sendable {
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
    let settling: [Settling]
    let result: Result<LedgerExchange, any Error>
    /// The time up to which downloads counted as due; `nil` if there was no lease.
    let lookedAt: Date?
    /// Whether the lease of the exchange was left out.
    let mustLease: Bool
    /// Whether a lease has failed: it may have taken effect all the same, if only the ledger's answer was lost.
    let hasFailedToLease: Bool
  }

  /// Performs the exchange, once more without the lease if the disk was full.
  func perform(in context: EngineContext) async -> Answer {
    var result = await attempt(leasing: request, in: context)
    var lookedAt = request?.now
    var hasFailedToLease = false
    if case .failure = result {
      hasFailedToLease = request != nil
      // On a full disk, space for the ledger is freed, once for each run.
      var hasRoom = false
      for one in settling where one.isOutOfRoom && !one.run.state.withLock({ $0.hasMadeRoom }) {
        one.run.state.withLock { $0.hasMadeRoom = true }
        // Unless the outcome was saved all the same, and only the answer was lost.
        let isSaved = (try? await context.store.record(one.run.id)).map { $0?.phase.isActive != true } ?? false
        if !isSaved, await one.run.makeRoomForTheLedger() { hasRoom = true }
      }
      // The request's selector has counted downloads whose lease was rolled back: the next exchange leases.
      if hasRoom {
        result = await attempt(leasing: nil, in: context)
        lookedAt = nil
      }
    }
    return Answer(
      settling: settling, result: result, lookedAt: lookedAt,
      mustLease: request != nil && lookedAt == nil,
      hasFailedToLease: hasFailedToLease)
  }

  private func attempt(
    leasing request: LeaseRequest?, in context: EngineContext
  ) async -> Result<LedgerExchange, any Error> {
    let saves = settling.map { LedgerSave($0.run.outcome, [.state, .checkpoint, .steps]) }
    do {
      return .success(
        try await context.store.exchange(saves, leasing: request, at: request?.now ?? context.time.date))
    } catch {
      return .failure(error)
    }
  }
}

/// The outcomes that have to be saved in the ledger, and the ledger's failures.
struct Outbox: Sendable {
  /// The outcomes for the next exchange.
  private(set) var waiting: [Exchange.Settling] = []
  /// Whether an exchange is in progress.
  private(set) var isExchanging = false
  /// The number of consecutive failures of the ledger.
  private(set) var failures = 0
  private(set) var lastError: DownloadError?

  /// Whether every outcome has been saved.
  var isEmpty: Bool { waiting.isEmpty && !isExchanging }

  mutating func append(_ settling: Exchange.Settling) { waiting.append(settling) }

  /// Begins an exchange with the waiting outcomes.
  mutating func begin(_ request: LeaseRequest?) -> Exchange {
    defer { (waiting, isExchanging) = ([], true) }
    return Exchange(settling: waiting, request: request)
  }

  /// Ends the exchange after a success.
  mutating func succeeded() {
    isExchanging = false
    failures = 0
  }

  /// Ends the exchange after a failure: its outcomes wait again.
  mutating func failed(_ settling: [Exchange.Settling], _ error: DownloadError) {
    isExchanging = false
    waiting = settling + waiting
    noteFailure(error)
  }

  mutating func noteFailure(_ error: DownloadError) {
    failures += 1
    lastError = error
  }
}
