@_spi(Ledger) import DownpipeCore
import Foundation

/// A ledger as a machine has it whose clock is ahead of the ledger's: its stores translate due times and the ends of leases,
/// as those of a ledger have to that machines share.
struct ClockedLedger: Ledger {
  private let base: any Ledger
  /// How far the clock of the machine is ahead, in seconds; negative if it is behind.
  private let ahead: Double

  init(_ base: any Ledger, ahead: Double) { (self.base, self.ahead) = (base, ahead) }

  var name: String { base.name }
  var id: String { base.id }
  var summary: String { base.summary }

  func open() async throws -> any LedgerStore {
    let store = try await base.open()
    return ahead == 0 ? store : ClockedStore(base: store, ahead: ahead)
  }
}

private struct ClockedStore: LedgerStoreWrapper {
  let base: any LedgerStore
  let ahead: Double

  private func inLedger(_ time: Date) -> Date { time.addingTimeInterval(-ahead) }
  private func inLedger(_ record: DownloadRecord) -> DownloadRecord { record.dueLater(by: -ahead) }
  private func onMachine(_ record: DownloadRecord) -> DownloadRecord { record.dueLater(by: ahead) }

  private func translating(
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) -> @Sendable (inout DownloadRecord) throws -> Void {
    { record in
      record = onMachine(record)
      try change(&record)
      record = inLedger(record)
    }
  }

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await base.add(additions, at: now, number: number).map {
      LedgerAddOutcome(isNew: $0.isNew, record: onMachine($0.record))
    }
  }

  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try await base.restore(records.map { inLedger($0) }, at: now)
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await base.update(id, at: now, number: number, translating(change)).map { onMachine($0) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await base.update(selection, at: now, number: number, translating(change))
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? { try await base.record(id).map { onMachine($0) } }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
    try await base.records(query).map { onMachine($0) }
  }

  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try await base.records(after: generation, limit: limit).map { onMachine($0) }
  }

  func unsettledMoves() async throws -> [DownloadRecord] { try await base.unsettledMoves().map { onMachine($0) } }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    var request = request
    (request.now, request.until) = (inLedger(request.now), inLedger(request.until))
    return try await base.lease(request).map { onMachine($0) }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await base.save(inLedger(record), fields, at: now)
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    var request = request
    if let lease = request {
      request?.now = inLedger(lease.now)
      request?.until = inLedger(lease.until)
    }
    let saves = saves.map { LedgerSave(inLedger($0.record), $0.fields) }
    var exchange = try await base.exchange(saves, leasing: request, at: now, number: number)
    exchange.leased = exchange.leased.map { onMachine($0) }
    return exchange
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try await base.remove(selection, number: number, leaving: { choose(onMachine($0)) })
  }

  func renewLeases(until lease: Date) async throws { try await base.renewLeases(until: inLedger(lease)) }

  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    try await base.leaseRates(wants, for: duration, at: inLedger(now))
  }

  func reclaim(at now: Date) async throws -> Int { try await base.reclaim(at: inLedger(now)) }

  func nextDue(after now: Date) async throws -> Date? {
    try await base.nextDue(after: inLedger(now))?.addingTimeInterval(ahead)
  }
}

extension DownloadRecord {
  /// The record with its due time moved by some seconds.
  func dueLater(by seconds: Double) -> DownloadRecord {
    var record = self
    record.notBefore = notBefore?.addingTimeInterval(seconds)
    return record
  }
}
