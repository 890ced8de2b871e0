@_spi(Ledger) public import DownpipeCore
import Foundation

/// A ledger that wraps another one, records its calls and fails as a test plans.
///
/// ```swift
/// let ledger = FaultyLedger(MemoryLedger())
/// ledger.fail(.save, at: 2, with: DownloadError(.ledger, "the disk is full"))
/// ```
@_spi(Ledger) public final class FaultyLedger: Ledger {
  /// The calls that are recorded and can fail.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// `Ledger.open`
    case open
    /// `add`
    case add
    /// `restore`
    case restore
    /// `record`
    case record
    /// `records`
    case records
    /// `records` in the order of the generations
    case recordsInOrder
    /// `counts`
    case counts
    /// `damaged`
    case damaged
    /// `lease`
    case lease
    /// `save`
    case save
    /// `exchange`
    case exchange
    /// `transition`
    case transition
    /// `remove`
    case remove
    /// `deletions`
    case deletions
    /// `forget(deletions:)`
    case forgetDeletions
    /// `renewLeases`
    case renewLeases
    /// `leaseRates`
    case leaseRates
    /// `reclaim`
    case reclaim
    /// `nextDue`
    case nextDue
    /// `isBusy`
    case isBusy
    /// `rank`
    case rank
    /// `update` of one record
    case update
    /// `update` of selected records
    case updateAll
    /// `totals`
    case totals
    /// `unsettledMoves`
    case unsettledMoves
    /// `settings`
    case settings
    /// `keep(settings:)`
    case keepSettings
    /// `close`
    case close
  }

  /// When a call fails or is held.
  public enum Moment: Sendable, Hashable {
    /// Before the call has an effect.
    case before
    /// After the call has taken effect: only its result is lost or late.
    case after
  }

  private struct State {
    var calls: [Operation] = []
    var before = FaultPlan<Operation>()
    var after = FaultPlan<Operation>()
    var held: [(operation: Operation, call: Int, moment: Moment)] = []
    /// The number of calls that have been held.
    var holds = 0
    var isReleased = false
    var saves: [(record: DownloadRecord, fields: RecordFields)] = []
  }

  private let base: any Ledger
  private let state = Watched(State())
  /// The name of the wrapped ledger.
  public var name: String { base.name }

  /// Wraps a ledger.
  public init(_ base: any Ledger) { self.base = base }

  /// Makes `times` calls of an operation fail, starting with call number `call`, counted from 1 over all openings since
  /// the ledger was made.
  public func fail(
    _ operation: Operation, at call: Int = 1, times: Int = 1, _ moment: Moment = .before, with error: DownloadError
  ) {
    state.update { state in
      switch moment {
      case .before: state.before.fail(operation, at: call, times: times, with: error)
      case .after: state.after.fail(operation, at: call, times: times, with: error)
      }
    }
  }

  /// Makes a call of an operation wait for ``release()``, like a slow disk: before it has an effect, or after it, so that
  /// its result is late. A cancelled caller does not wait. Calls are counted as in ``fail(_:at:times:_:with:)``.
  public func hold(_ operation: Operation, at call: Int = 1, _ moment: Moment = .before) {
    state.update { state in
      state.held.append((operation, call, moment))
      state.isReleased = false
    }
  }

  /// Waits until at least `count` calls have been held. Returns early when the waiting task is cancelled.
  public func held(atLeast count: Int) async {
    await state.wait { $0.holds >= count }
  }

  /// Releases all held calls and cancels planned holds.
  public func release() {
    state.update { state in
      state.held = []
      state.isReleased = true
    }
  }

  /// The calls so far, in order, including failed ones.
  public var calls: [Operation] { state.value.calls }
  /// The saves so far, in order, including failed ones.
  public var saves: [(record: DownloadRecord, fields: RecordFields)] { state.value.saves }

  /// Waits until an operation was called at least `count` times. Returns early when the waiting task is cancelled.
  public func calls(of operation: Operation, atLeast count: Int) async {
    await state.wait { $0.before.count(operation) >= count }
  }

  /// Opens the wrapped ledger.
  public func open() async throws -> any LedgerStore {
    try await perform(.open) { FaultyLedgerStore(base: try await base.open(), ledger: self) }
  }

  fileprivate func perform<Result>(_ operation: Operation, _ body: () async throws -> Result) async throws -> Result {
    let (errors, holds) = state.update { state in
      state.calls.append(operation)
      let errors = (before: state.before.next(operation), after: state.after.next(operation))
      let call = state.before.count(operation)
      return (errors, state.held.filter { $0.operation == operation && $0.call == call }.map(\.moment))
    }
    if holds.contains(.before) { await waitForRelease() }
    if let error = errors.before { throw error }
    let result = try await body()
    if holds.contains(.after) { await waitForRelease() }
    if let error = errors.after { throw error }
    return result
  }

  private func waitForRelease() async {
    state.update { $0.holds += 1 }
    await state.wait { $0.isReleased }
  }

  fileprivate func recordSave(_ record: DownloadRecord, _ fields: RecordFields) {
    state.update { $0.saves.append((record, fields)) }
  }
}

private struct FaultyLedgerStore: LedgerStoreWrapper {
  let base: any LedgerStore
  let ledger: FaultyLedger

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await ledger.perform(.add) { try await base.add(additions, at: now, number: number) }
  }

  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try await ledger.perform(.restore) { try await base.restore(records, at: now) }
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await ledger.perform(.update) { try await base.update(id, at: now, number: number, change) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await ledger.perform(.updateAll) { try await base.update(selection, at: now, number: number, change) }
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    try await ledger.perform(.record) { try await base.record(id) }
  }

  func settings() async throws -> Data? { try await ledger.perform(.settings) { try await base.settings() } }

  func keep(settings: Data) async throws {
    try await ledger.perform(.keepSettings) { try await base.keep(settings: settings) }
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try await ledger.perform(.records) { try await base.records(of: ids) }
  }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
    try await ledger.perform(.records) { try await base.records(query) }
  }

  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try await ledger.perform(.recordsInOrder) { try await base.records(after: generation, limit: limit) }
  }

  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try await ledger.perform(.counts) { try await base.counts(filter) }
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    try await ledger.perform(.totals) { try await base.totals(filter) }
  }

  func unsettledMoves() async throws -> [DownloadRecord] {
    try await ledger.perform(.unsettledMoves) { try await base.unsettledMoves() }
  }

  func damaged() async throws -> [DamagedRecord] {
    try await ledger.perform(.damaged) { try await base.damaged() }
  }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await ledger.perform(.lease) { try await base.lease(request) }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    ledger.recordSave(record, fields)
    return try await ledger.perform(.save) { try await base.save(record, fields, at: now) }
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    for save in saves { ledger.recordSave(save.record, save.fields) }
    return try await ledger.perform(.exchange) {
      try await base.exchange(saves, leasing: request, at: now, number: number)
    }
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    try await ledger.perform(.transition) { try await base.transition(selection, event, at: now, number: number) }
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try await ledger.perform(.remove) { try await base.remove(selection, number: number, leaving: choose) }
  }

  func deletions(
    at location: String?, in numbers: ClosedRange<Int64>, limit: Int
  ) async throws -> [LedgerDeletion] {
    try await ledger.perform(.deletions) { try await base.deletions(at: location, in: numbers, limit: limit) }
  }

  func forget(deletions numbers: [Int64]) async throws {
    try await ledger.perform(.forgetDeletions) { try await base.forget(deletions: numbers) }
  }

  func renewLeases(until lease: Date) async throws {
    try await ledger.perform(.renewLeases) { try await base.renewLeases(until: lease) }
  }

  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    try await ledger.perform(.leaseRates) { try await base.leaseRates(wants, for: duration, at: now) }
  }

  func reclaim(at now: Date) async throws -> Int {
    try await ledger.perform(.reclaim) { try await base.reclaim(at: now) }
  }

  func nextDue(after now: Date) async throws -> Date? {
    try await ledger.perform(.nextDue) { try await base.nextDue(after: now) }
  }

  func isBusy() async throws -> Bool { try await ledger.perform(.isBusy) { try await base.isBusy() } }

  func rank(by ranking: Ranking) async throws {
    try await ledger.perform(.rank) { try await base.rank(by: ranking) }
  }

  func close() async throws {
    try await ledger.perform(.close) { try await base.close() }
  }
}
