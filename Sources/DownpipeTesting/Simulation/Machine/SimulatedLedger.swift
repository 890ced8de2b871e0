@_spi(Ledger) import DownpipeCore
import Foundation

/// A ledger that is slow and fails as its world says, ends with its process, and shows its changes to the invariants.
struct SimulatedLedger: Ledger {
  let base: any Ledger
  let process: SimulatedProcess

  var name: String { base.name }
  var id: String { base.id }
  var summary: String { base.summary }

  func open() async throws -> any LedgerStore {
    try process.checkAlive()
    let store = try await base.open()
    guard process.isAlive else { throw SimulatedProcess.death }
    process.set(store)
    return SimulatedStore(store, process)
  }
}

/// The store of a ``SimulatedLedger``.
final class SimulatedStore: LedgerStore {
  let owner: String
  let leasesExpire: Bool
  let countsForAll: Bool
  let leasesRates: Bool
  let changesByOthers: AsyncStream<Void>?
  private let process: SimulatedProcess

  /// - Parameter store: The store that the process has, which ends with it.
  init(_ store: any LedgerStore, _ process: SimulatedProcess) {
    (owner, changesByOthers) = (store.owner, store.changesByOthers)
    (leasesExpire, countsForAll, leasesRates) = (store.leasesExpire, store.countsForAll, store.leasesRates)
    self.process = process
  }

  private var world: World { process.system.world }
  private var checks: InvariantChecks { process.system.checks }

  // MARK: Calls

  private static var failure: DownloadError { DownloadError(.ledger, "the ledger fails") }

  /// Performs a call. It may take its time, and fail before or after it has taken effect; the process may die at each
  /// point where it waits.
  private func call<Result>(
    _ name: String, _ work: (any LedgerStore) async throws -> Result,
    noting note: (Result, any LedgerStore) async throws -> Void
  ) async throws -> Result {
    try await pause()
    if world.happens(world.configuration.ledgerFailures / 2, .ledger) {
      world.noteFailure("ledger")
      world.timeline.note(.ledger, process.number, text: "\(name) fails before it takes effect")
      throw Self.failure
    }
    // What the invariants see is read by other calls, before anything else changes.
    let result = try await process.system.ledgerCalls.perform {
      let store = try process.store()
      let result = try await work(store)
      // Also if the process has died meanwhile: the call has taken effect.
      try await note(result, store)
      return result
    }
    try await pause()
    if world.happens(world.configuration.ledgerFailures / 2, .ledger) {
      world.noteFailure("ledger")
      world.timeline.note(.ledger, process.number, text: "\(name) fails after it has taken effect")
      throw Self.failure
    }
    return result
  }

  private func pause() async throws {
    await world.scheduler.yield(on: process.executor)
    if world.happens(world.configuration.slowLedger, .ledger) {
      try? await process.time.sleep(for: world.duration(in: .zero ... .seconds(1), .ledger), purpose: .simulated)
    }
    try process.checkAlive()
  }

  /// Performs a call that reads.
  private func read<Result>(_ name: String, _ work: (any LedgerStore) async throws -> Result) async throws -> Result {
    try await call(name, work) { _, _ in }
  }

  /// Performs a call that changes records, and shows them to the invariants.
  private func write<Result>(
    _ name: String, _ change: LedgerChange, _ work: (any LedgerStore) async throws -> Result,
    of ids: (Result) -> [DownloadID]?, as kind: ((Result) -> LedgerChange)? = nil
  ) async throws -> Result {
    try await call(name, work) { result, store in
      let change = kind?(result) ?? change
      guard let ids = ids(result) else {
        return checks.ledgerHas(try await store.records(DownloadQuery()), nil, after: change, process)
      }
      guard !ids.isEmpty else { return }
      world.timeline.note(
        .ledger, process.number, ids.count == 1 ? ids[0] : nil, numbers: Int64(ids.count),
        text: "\(name) of \(ids.map(\.rawValue).joined(separator: ", "))")
      checks.ledgerHas(try await store.records(of: ids), ids, after: change, process)
    }
  }

  // MARK: The contract

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await write("the addition", .other) {
      try await $0.add(additions, at: now, number: number)
    } of: {
      $0.map(\.record.id)
    }
  }

  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try await write("the restored records", .other) {
      try await $0.restore(records, at: now)
    } of: {
      zip(records, $0).filter(\.1).map(\.0.id)
    }
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await write("the change", .other) {
      try await $0.update(id, at: now, number: number, change)
    } of: {
      $0 == nil ? [] : [id]
    }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await write("the change", .other) {
      try await $0.update(selection, at: now, number: number, change)
    } of: {
      $0.ids
    }
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    try await read("reading") { try await $0.record(id) }
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try await read("reading") { try await $0.records(of: ids) }
  }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
    try await read("reading") { try await $0.records(query) }
  }

  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try await read("reading") { try await $0.records(after: generation, limit: limit) }
  }

  func damaged() async throws -> [DamagedRecord] { try await read("reading") { try await $0.damaged() } }

  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try await read("counting") { try await $0.counts(filter) }
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    try await read("counting") { try await $0.totals(filter) }
  }

  func unsettledMoves() async throws -> [DownloadRecord] { try await read("reading") { try await $0.unsettledMoves() } }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await write("the lease", .lease) {
      try await $0.lease(request)
    } of: {
      $0.map(\.id)
    }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await write("the save", .save) {
      try await $0.save(record, fields, at: now)
    } of: {
      $0 ? [record.id] : []
    }
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    func saved(_ exchange: LedgerExchange) -> [DownloadID] {
      zip(saves, exchange.saved).filter(\.1).map(\.0.record.id)
    }
    return try await write("the exchange", .other) {
      try await $0.exchange(saves, leasing: request, at: now, number: number)
    } of: {
      // An answer that is given again tells of what was changed before.
      $0.isGivenAgain ? [] : saved($0) + $0.leased.map(\.id)
    } as: {
      .exchange(saved: saved($0), isByHand: request?.isByHand == true)
    }
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    try await write("“\(event.rawValue)”", .transition(event)) {
      try await $0.transition(selection, event, at: now, number: number)
    } of: {
      $0.ids
    }
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    let seen = SeenRecords()
    return try await write("the removal", .removal) { store in
      try await store.remove(
        selection, number: number,
        leaving: { record in
          let left = choose(record)
          if left != nil { seen.add(record.id) }
          return left
        })
    } of: { _ in
      seen.ids
    }
  }

  func deletions(
    at location: String?, in numbers: ClosedRange<Int64>, limit: Int
  ) async throws -> [LedgerDeletion] {
    try await read("reading") { try await $0.deletions(at: location, in: numbers, limit: limit) }
  }

  func forget(deletions numbers: [Int64]) async throws {
    try await read("forgetting") { try await $0.forget(deletions: numbers) }
  }

  func renewLeases(until lease: Date) async throws {
    try await read("renewing") { try await $0.renewLeases(until: lease) }
  }

  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    try await read("leasing rates") { try await $0.leaseRates(wants, for: duration, at: now) }
  }

  func reclaim(at now: Date) async throws -> Int {
    try await write("the reclaim", .transition(.leaseLost)) {
      try await $0.reclaim(at: now)
    } of: {
      $0 > 0 ? nil : []
    }
  }

  func nextDue(after now: Date) async throws -> Date? { try await read("reading") { try await $0.nextDue(after: now) } }

  func isBusy() async throws -> Bool { try await read("asking whether it is busy") { try await $0.isBusy() } }

  func rank(by ranking: Ranking) async throws { try await read("ranking") { try await $0.rank(by: ranking) } }

  func settings() async throws -> Data? { try await read("reading") { try await $0.settings() } }

  func keep(settings: Data) async throws {
    try await read("keeping settings") { try await $0.keep(settings: settings) }
  }

  func hasChangesByOtherProcesses() async throws -> Bool? {
    try process.checkAlive()
    return try await process.store().hasChangesByOtherProcesses()
  }

  func close() async throws {
    try await process.system.ledgerCalls.perform {
      let store = try process.store()
      try await store.close()
      process.forgetStore()
    }
  }
}

/// What a call of a ledger did.
enum LedgerChange: Sendable {
  case lease
  case save
  /// - Parameter isByHand: Whether downloads were leased that are started by hand, beyond limits.
  case exchange(saved: [DownloadID], isByHand: Bool)
  case transition(Lifecycle.Event)
  case removal
  case other
}
