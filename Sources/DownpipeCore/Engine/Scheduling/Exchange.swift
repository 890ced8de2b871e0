internal import Foundation

/// One exchange with the ledger: how runs have ended goes in, leases come out, in one commit. One is under way at a time;
/// what ends meanwhile goes into the next one.
struct Exchange: Sendable {
  /// Runs whose outcome is written into the ledger, with the state that is announced then.
  let settling: [Settling]
  /// What to lease; `nil` when nothing may start.
  let request: LeaseRequest?

  /// A run whose outcome is in its record, but not in the ledger yet.
  struct Settling: Sendable {
    let run: Run
    let state: DownloadState
    /// Whether it failed for lack of room: the ledger may fail for the same reason.
    var isOutOfRoom: Bool {
      switch state {
      case .failed(let error), .waiting(.retry(_, let error)), .waiting(.missing(_, _, let error)):
        error.code == .noSpace
      default: false
      }
    }
  }

  /// What came of it.
  struct Answer: Sendable {
    let settling: [Settling]
    let result: Result<LedgerExchange, any Error>
    /// The time up to which the ledger has looked at what is due; `nil` when nothing was leased.
    let lookedAt: Date?
  }

  /// Begins the exchange; the answer goes to the mailbox.
  func start(in context: EngineContext) -> Task<Void, Never> {
    Task { context.mailbox.post(await perform(in: context)) }
  }

  private func perform(in context: EngineContext) async -> Answer {
    var result = await attempt(in: context)
    if case .failure = result {
      // On a full disk, room for the ledger is made once.
      var hasRoom = false
      for one in settling where one.isOutOfRoom {
        if await one.run.makeRoomForTheLedger() { hasRoom = true }
      }
      if hasRoom { result = await attempt(in: context) }
    }
    return Answer(settling: settling, result: result, lookedAt: request?.now)
  }

  private func attempt(in context: EngineContext) async -> Result<LedgerExchange, any Error> {
    let saves = settling.map { LedgerSave($0.run.record, [.state, .checkpoint, .steps]) }
    do {
      return .success(
        try await context.store.exchange(saves, leasing: request, at: request?.now ?? context.time.date))
    } catch {
      return .failure(error)
    }
  }
}

/// What has to be written into the ledger, and whether that works.
struct Outbox: Sendable {
  /// What the next exchange takes along.
  private(set) var waiting: [Exchange.Settling] = []
  /// The exchange under way.
  private(set) var task: Task<Void, Never>?
  /// Failures of the ledger in a row.
  private(set) var failures = 0
  private(set) var lastError: DownloadError?

  /// Whether nothing waits to be written.
  var isEmpty: Bool { waiting.isEmpty && task == nil }
  var isExchanging: Bool { task != nil }

  mutating func append(_ settling: Exchange.Settling) { waiting.append(settling) }

  /// Takes along what waits.
  mutating func begin(_ request: LeaseRequest?, in context: EngineContext) {
    let exchange = Exchange(settling: waiting, request: request)
    waiting = []
    task = exchange.start(in: context)
  }

  /// The exchange has ended well.
  mutating func succeeded() {
    task = nil
    failures = 0
  }

  /// The exchange has failed: what it took along waits again.
  mutating func failed(_ settling: [Exchange.Settling], _ error: DownloadError) {
    task = nil
    waiting = settling + waiting
    noteFailure(error)
  }

  mutating func noteFailure(_ error: DownloadError) {
    failures += 1
    lastError = error
  }
}
