@_spi(Ledger) package import DownpipeCore
package import Foundation

/// A ledger store around another one: it implements the methods that it changes, and all others forward to ``base``.
///
/// `exchange` and `records(of:)` are not forwarded: they call `save`, `lease` and `record` of the wrapper, so that a wrapper
/// that changes these changes the bulk methods too. An exchange is then several commits, and its number means nothing.
package protocol LedgerStoreWrapper: LedgerStore {
  /// The store that does the work.
  var base: any LedgerStore { get }
}

extension LedgerStoreWrapper {
  package var owner: String { base.owner }
  package var leasesExpire: Bool { base.leasesExpire }
  package var countsForAll: Bool { base.countsForAll }
  package var leasesRates: Bool { base.leasesRates }
  package var changesByOthers: AsyncStream<Void>? { base.changesByOthers }
  package func note(machineFault fault: DownloadError?) { base.note(machineFault: fault) }
  package func hasChangesByOtherProcesses() async throws -> Bool? { try await base.hasChangesByOtherProcesses() }

  package func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await base.add(additions, at: now, number: number)
  }
  package func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    try await base.restore(records, at: now)
  }
  package func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await base.update(id, at: now, number: number, change)
  }
  package func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await base.update(selection, at: now, number: number, change)
  }
  package func record(_ id: DownloadID) async throws -> DownloadRecord? { try await base.record(id) }
  package func records(_ query: DownloadQuery) async throws -> [DownloadRecord] { try await base.records(query) }
  package func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    try await base.records(after: generation, limit: limit)
  }
  package func damaged() async throws -> [DamagedRecord] { try await base.damaged() }
  package func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try await base.counts(filter)
  }
  package func totals(_ filter: DownloadFilter) async throws -> DownloadTotals { try await base.totals(filter) }
  package func unsettledMoves() async throws -> [DownloadRecord] { try await base.unsettledMoves() }
  package func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] { try await base.lease(request) }
  package func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await base.save(record, fields, at: now)
  }
  /// Saves the records one after the other, then leases.
  package func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    var exchange = LedgerExchange()
    for save in saves {
      let isSaved = try await self.save(save.record, save.fields, at: now)
      exchange.saved.append(isSaved)
      guard isSaved, save.fields.contains(.state), [.finished, .failed].contains(save.record.phase),
        let now = try await record(save.record.id), now.phase == .waiting
      else { continue }
      exchange.reopened.insert(save.record.id)
    }
    // Which downloads a finished one has released is not known here.
    exchange.mayHaveReleasedDelayed = zip(saves, exchange.saved).contains {
      $1 && $0.fields.contains(.state) && $0.record.phase == .finished
    }
    if let request { exchange.leased = try await lease(request) }
    return exchange
  }
  package func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    try await base.transition(selection, event, at: now, number: number)
  }
  package func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try await base.remove(selection, number: number, leaving: choose)
  }
  package func deletions(
    at location: String?, in numbers: ClosedRange<Int64>, limit: Int
  ) async throws -> [LedgerDeletion] {
    try await base.deletions(at: location, in: numbers, limit: limit)
  }
  package func forget(deletions numbers: [Int64]) async throws { try await base.forget(deletions: numbers) }
  package func renewLeases(until lease: Date) async throws { try await base.renewLeases(until: lease) }
  package func leaseRates(
    _ wants: [RateWant], for duration: Duration, at now: Date
  ) async throws -> [RateShare] {
    try await base.leaseRates(wants, for: duration, at: now)
  }
  package func reclaim(at now: Date) async throws -> Int { try await base.reclaim(at: now) }
  package func nextDue(after now: Date) async throws -> Date? { try await base.nextDue(after: now) }
  package func isBusy() async throws -> Bool { try await base.isBusy() }
  package func rank(by ranking: Ranking) async throws { try await base.rank(by: ranking) }
  package func settings() async throws -> Data? { try await base.settings() }
  package func keep(settings: Data) async throws { try await base.keep(settings: settings) }
  package func close() async throws { try await base.close() }
}
