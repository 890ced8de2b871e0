@_spi(Ledger) public import DownpipeCore
import Foundation

/// A ledger outside of the simulation, such as one in a file or at a server: each of its calls is one step.
///
/// ```swift
/// let simulation = Simulation(world) { machine in
///   OutsideLedger(SQLiteLedger(machine.keep("ledger") { "\(folder)/\(DownloadID()).sqlite" }), machine)
/// }
/// ```
/// It has to be the same ledger for all processes of a world, and a new one for each world. The end of a simulated process
/// ends its store, as the end of a real one would.
@_spi(Ledger) public struct OutsideLedger: Ledger {
  private let base: any Ledger
  private let machine: SimulatedMachine

  /// Creates a ledger for the pipeline of a simulated process.
  public init(_ base: any Ledger, _ machine: SimulatedMachine) { (self.base, self.machine) = (base, machine) }

  /// The summary of the ledger.
  public var summary: String { base.summary }

  /// Opens the ledger, in one step.
  /// - Throws: The errors of the ledger.
  public func open() async throws -> any LedgerStore {
    let base = base
    return OutsideStore(base: try await machine.outside { try await base.open() }, machine: machine)
  }
}

private struct OutsideStore: LedgerStore {
  let base: any LedgerStore
  let machine: SimulatedMachine

  var owner: String { base.owner }
  var leasesExpire: Bool { base.leasesExpire }
  var countsForAll: Bool { base.countsForAll }
  var leasesRates: Bool { base.leasesRates }
  var changesByOthers: AsyncStream<Void>? { base.changesByOthers }

  private func call<Result: Sendable>(
    _ work: @escaping @Sendable (any LedgerStore) async throws -> Result
  ) async throws -> Result {
    let base = base
    return try await machine.outside { try await work(base) }
  }

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await call { try await $0.add(additions, at: now, number: number) }
  }
  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try await call { try await $0.restore(records, at: now) }
  }
  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await call { try await $0.update(id, at: now, number: number, change) }
  }
  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await call { try await $0.update(selection, at: now, number: number, change) }
  }
  func record(_ id: DownloadID) async throws -> DownloadRecord? { try await call { try await $0.record(id) } }
  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try await call { try await $0.records(of: ids) }
  }
  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
    try await call { try await $0.records(query) }
  }
  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try await call { try await $0.records(after: generation, limit: limit) }
  }
  func damaged() async throws -> [DamagedRecord] { try await call { try await $0.damaged() } }
  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try await call { try await $0.counts(filter) }
  }
  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    try await call { try await $0.totals(filter) }
  }
  func unsettledMoves() async throws -> [DownloadRecord] { try await call { try await $0.unsettledMoves() } }
  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await call { try await $0.lease(request) }
  }
  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await call { try await $0.save(record, fields, at: now) }
  }
  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    try await call { try await $0.exchange(saves, leasing: request, at: now, number: number) }
  }
  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    try await call { try await $0.transition(selection, event, at: now, number: number) }
  }
  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try await call { try await $0.remove(selection, number: number, leaving: choose) }
  }
  func deletions(
    at location: String?, in numbers: ClosedRange<Int64>, limit: Int
  ) async throws -> [LedgerDeletion] {
    try await call { try await $0.deletions(at: location, in: numbers, limit: limit) }
  }
  func forget(deletions numbers: [Int64]) async throws {
    try await call { try await $0.forget(deletions: numbers) }
  }
  func renewLeases(until lease: Date) async throws { try await call { try await $0.renewLeases(until: lease) } }
  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    try await call { try await $0.leaseRates(wants, for: duration, at: now) }
  }
  func reclaim(at now: Date) async throws -> Int { try await call { try await $0.reclaim(at: now) } }
  func nextDue(after now: Date) async throws -> Date? { try await call { try await $0.nextDue(after: now) } }
  func isBusy() async throws -> Bool { try await call { try await $0.isBusy() } }
  func rank(by ranking: Ranking) async throws { try await call { try await $0.rank(by: ranking) } }
  func settings() async throws -> Data? { try await call { try await $0.settings() } }
  func keep(settings: Data) async throws { try await call { try await $0.keep(settings: settings) } }
  func hasChangesByOtherProcesses() async throws -> Bool? {
    // The processes of a world are stores of this one: they hear of each other at once.
    base.changesByOthers == nil ? try await call { try await $0.hasChangesByOtherProcesses() } : nil
  }
  func close() async throws { try await call { try await $0.close() } }
}
