import Foundation
import Synchronization

/// A ledger in memory: for tests, and for downloads that need not survive the process.
///
/// Every opening of one value, and of its copies, shows the same records, so that a test can "restart" a
/// downloader on it. A store that is dropped without ``LedgerStore/close()`` counts as a dead process:
/// ``LedgerStore/reclaim(at:)`` gives back what it held.
/// ```swift
/// let ledger = MemoryLedger()
/// let first = try await Downloader { source; store; ledger }
/// await first.shutdown()
/// let second = try await Downloader { source; store; ledger }  // goes on where the first one stood
/// ```
public struct MemoryLedger: Ledger {
  private let box = MemoryLedgerBox()

  /// An empty ledger.
  public init() {}

  /// Opens the ledger for one more owner. Never fails.
  public func open() async throws -> any LedgerStore { MemoryLedgerStore(box) }
}

/// The records that every store of one ``MemoryLedger`` shares.
final class MemoryLedgerBox: Sendable {
  let state = Mutex(MemoryLedgerState())
}

/// One opening of a ``MemoryLedger``.
final class MemoryLedgerStore: LedgerStore {
  let owner: String
  private let box: MemoryLedgerBox

  init(_ box: MemoryLedgerBox) {
    self.box = box
    owner = "memory/\(DownloadID())"
    let owner = owner
    box.state.withLock { _ = $0.openOwners.insert(owner) }
  }

  /// A store that is dropped cannot save any more: its owner is gone.
  deinit {
    let owner = owner
    box.state.withLock { _ = $0.openOwners.remove(owner) }
  }

  private func withState<Result: Sendable>(
    _ body: (inout MemoryLedgerState) throws -> Result
  ) throws -> Result {
    try box.state.withLock { state in
      guard state.openOwners.contains(owner) else {
        throw DownloadError(
          .ledger, "this opening of the ledger has been closed: open the ledger again", stage: "MemoryLedger")
      }
      return try body(&state)
    }
  }

  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    try withState { try $0.add(additions, owner: owner, at: now) }
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? { try withState { $0.record(id) } }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try withState { state in ids.compactMap(state.record) }
  }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] { try withState { $0.records(query) } }

  func counts(tag: String?) async throws -> [DownloadState.Phase: Int] { try withState { $0.counts(tag: tag) } }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await exchange([], leasing: request, at: request.now).leased
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try withState { $0.save(record, fields, owner: owner, at: now) }
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
  ) async throws -> LedgerExchange {
    try withState { state in
      var exchange = LedgerExchange()
      exchange.saved = saves.map { state.save($0.record, $0.fields, owner: owner, at: now) }
      if let request { exchange.leased = state.lease(request, owner: owner) }
      return exchange
    }
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
  ) async throws -> LedgerTransitionResult {
    guard event != .leased else {
      throw DownloadError(
        .ledger, "only a lease makes a download active: lease it instead", stage: "MemoryLedger")
    }
    return try withState { $0.transition(selection, event, owner: owner, at: now) }
  }

  func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord] {
    try withState { $0.remove(selection, limit: limit, owner: owner) }
  }

  func renewLeases(until lease: Date) async throws { try withState { _ in } }

  func reclaim(at now: Date) async throws -> Int {
    try withState { state in
      let open = state.openOwners
      return state.giveBack(at: now) { !open.contains($0) }
    }
  }

  func nextDue(after now: Date) async throws -> Date? { try withState { $0.nextDue(after: now) } }

  func rerank(_ rank: @escaping @Sendable (RankingContext) -> Rank) async throws { try withState { $0.rerank(rank) } }

  func close() async throws {
    box.state.withLock { state in
      guard state.openOwners.remove(owner) != nil else { return }
      _ = state.giveBack { $0 == owner }
    }
  }
}
