package import Foundation
import Synchronization

/// A ledger in memory, for tests and for downloads that need not outlive the process.
///
/// All stores opened from one value or its copies share the same records, so that a test can restart a downloader with
/// it. A store that is released without being closed counts as an ended process:
/// another store releases the downloads that it held.
///
/// It is meant for up to some 100,000 downloads: replacing the scheduling policy ranks all of them in one step, and leases
/// sort the queue when it has changed.
///
/// ```swift
/// let ledger = MemoryLedger()
/// let first = try await Downloader { source; store; ledger }
/// await first.shutdown()
/// let second = try await Downloader { source; store; ledger }  // continues the downloads of the first
/// ```
public struct MemoryLedger: Ledger {
  private let box = MemoryLedgerBox()

  /// Creates an empty ledger.
  public init() {}

  /// Opens the ledger for another owner. It never fails.
  @_spi(Ledger) public func open() async throws -> any LedgerStore { MemoryLedgerStore(box) }
}

/// The records shared by all stores of one ``MemoryLedger``.
final class MemoryLedgerBox: Sendable {
  let state = Mutex(MemoryLedgerState())
  let watchers = LedgerWatchers()
}

/// One opening of a ``MemoryLedger``.
final class MemoryLedgerStore: LedgerStore {
  let owner: String
  let leasesRates = true
  let changesByOthers: AsyncStream<Void>?
  private let box: MemoryLedgerBox

  init(_ box: MemoryLedgerBox) {
    self.box = box
    owner = "memory/\(DownloadID())"
    changesByOthers = box.watchers.stream(for: owner)
    let owner = owner
    box.state.withLock { $0.open(owner) }
  }

  /// A released store cannot save any more, because its owner has ended.
  deinit {
    let owner = owner
    box.state.withLock { _ = $0.close(owner) }
    box.watchers.end(owner)
  }

  private func withState<Result: Sendable>(_ body: (inout MemoryLedgerState) throws -> Result) throws -> Result {
    try box.state.withLock { state in
      guard state.isOpen(owner) else {
        throw DownloadError(
          .ledger, "this opening of the ledger has been closed: open the ledger again", stage: "MemoryLedger")
      }
      return try body(&state)
    }
  }

  /// Makes a change, and informs the other stores if it is relevant to them.
  private func change<Result: Sendable>(
    _ body: (inout MemoryLedgerState) throws -> Result, concernsOthers: (Result) -> Bool
  ) throws -> Result {
    let result = try withState(body)
    if concernsOthers(result) { box.watchers.tell(changedBy: owner) }
    return result
  }

  /// Makes a numbered change.
  private func change<Result: Sendable>(
    _ number: Int64?, _ answer: LedgerAnswer<Result>, _ body: (inout MemoryLedgerState) throws -> Result
  ) throws -> Result {
    try change({ try $0.perform(number, of: owner, answer, body) }, concernsOthers: answer.hasChanged)
  }

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try change(number, .additions(additions, at: now)) { try $0.add(additions, owner: owner, at: now) }
  }

  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try change({ try $0.restore(records, owner: owner, at: now) }, concernsOthers: { $0.contains(true) })
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try self.change(number, .update(id, at: now)) { try $0.update(id, owner: owner, at: now, change) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try self.change(number, .bulk) { try $0.update(selection, owner: owner, at: now, change) }
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? { try withState { $0.record(id) } }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] { try withState { $0.records(query) } }

  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try withState { $0.records(after: generation, limit: limit) }
  }

  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try withState { $0.counts(filter) }
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals { try withState { $0.totals(filter) } }

  func unsettledMoves() async throws -> [DownloadRecord] { try withState { $0.unsettledMoves() } }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try withState { $0.lease(request, owner: owner) }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try change(
      { $0.save(record, fields, owner: owner, at: now) }, concernsOthers: { $0 && LedgerSave(record, fields).endsRun })
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    try change(
      { try $0.exchange(saves, leasing: request, owner: owner, at: now, number: number) },
      concernsOthers: { zip(saves, $0.saved).contains { $0.endsRun && $1 } })
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    guard event != .leased else {
      throw DownloadError(
        .ledger, "only a lease makes a download active: lease it instead", stage: "MemoryLedger")
    }
    return try change(number, .bulk) { $0.transition(selection, event, owner: owner, at: now) }
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try change(number, .removal) { $0.remove(selection, owner: owner, leaving: choose) }
  }

  func deletions(
    at location: String?, in numbers: ClosedRange<Int64>, limit: Int
  ) async throws -> [LedgerDeletion] {
    try withState { $0.deletions(at: location, in: numbers, limit: limit) }
  }

  func forget(deletions numbers: [Int64]) async throws {
    try withState { $0.forget(deletions: numbers) }
  }

  func renewLeases(until lease: Date) async throws { try withState { _ in } }

  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    try withState { $0.leaseRates(wants, for: duration, at: now, owner: owner) }
  }

  func reclaim(at now: Date) async throws -> Int {
    try change({ $0.reclaim(at: now) }, concernsOthers: { $0 > 0 })
  }

  func nextDue(after now: Date) async throws -> Date? { try withState { $0.nextDue(after: now) } }

  func isBusy() async throws -> Bool { try withState { $0.isBusy } }

  func rank(by ranking: Ranking) async throws { try withState { $0.rank(by: ranking, owner: owner) } }

  func settings() async throws -> Data? { try withState { $0.settings } }

  func keep(settings: Data) async throws { try withState { $0.settings = settings } }

  func close() async throws {
    let gaveBack = box.state.withLock { state in
      guard state.close(owner) else { return 0 }
      return state.giveBack { $0 == owner }
    }
    if gaveBack > 0 { box.watchers.tell(changedBy: owner) }
    box.watchers.end(owner)
  }
}

extension LedgerAddOutcome {
  /// Whether the addition has changed the record.
  package func isChanged(at now: Date) -> Bool { isNew || record.updatedAt == now }
}

extension LedgerSave {
  /// Whether the save ends a run.
  package var endsRun: Bool { fields.contains(.state) && !record.phase.isActive }
}
