@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct LedgerStoreWrapperTests {
  private struct Wrapper: LedgerStoreWrapper {
    let base: any LedgerStore
  }

  /// A requirement that is missing from the wrapper or from ``FaultyLedger`` would get the protocol's default, or would
  /// not be recorded.
  @Test func everyRequirementReachesTheWrappedStore() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let base = try await ledger.open()
    let store: any LedgerStore = Wrapper(base: base)
    let now = Date(timeIntervalSince1970: 0)
    let addition = LedgerAddition(request: try DownloadRequest("https://example.org/a", id: "a"), arrival: 1)
    let lease = LeaseRequest(now: now, until: now + 30) { _ in .take }

    #expect(store.owner == base.owner)
    #expect(store.changesByOthers != nil)
    try await store.rank(by: .arrival)
    let record = try #require(try await store.add([addition], at: now).first?.record)
    _ = try await store.restore([record], at: now)
    _ = try await store.update("a", at: now) { _ in }
    _ = try await store.update(.all, at: now) { _ in }
    _ = try await store.record("a")
    _ = try await store.records(DownloadQuery())
    _ = try await store.records(after: 0, limit: 1)
    _ = try await store.counts(.all)
    _ = try await store.totals(.all)
    _ = try await store.damaged()
    _ = try await store.unsettledMoves()
    _ = try await store.nextDue(after: now)
    _ = try await store.isBusy()
    _ = try await store.lease(lease)
    _ = try await store.save(record, .state, at: now)
    try await store.renewLeases(until: now + 60)
    _ = try await store.leaseRates([], for: .seconds(5), at: now)
    _ = try await store.reclaim(at: now)
    _ = try await store.transition(.all, .pause, at: now)
    _ = try await store.remove(.all)
    _ = try await store.deletions(at: nil, in: 1...1, limit: 1)
    try await store.forget(deletions: [1])
    try await store.keep(settings: Data("{}".utf8))
    _ = try await store.settings()
    let single: [FaultyLedger.Operation] = [
      .open, .rank, .add, .restore, .update, .updateAll, .record, .records, .recordsInOrder, .counts, .totals, .damaged,
      .unsettledMoves, .nextDue,
      .isBusy, .lease, .save, .renewLeases, .leaseRates, .reclaim, .transition, .remove, .deletions,
      .forgetDeletions, .keepSettings, .settings,
    ]
    #expect(ledger.calls == single)

    // The bulk calls are not forwarded: they consist of the single calls of the wrapper.
    _ = try await store.records(of: ["a", "b"])
    _ = try await store.exchange([LedgerSave(record, .state)], leasing: lease, at: now)
    try await store.close()
    #expect(ledger.calls == single + [.record, .record, .save, .lease, .close])
    #expect(Set(FaultyLedger.Operation.allCases).subtracting(ledger.calls) == [.exchange])
  }

  /// ``FaultyLedger`` itself records the bulk calls.
  @Test func bulkCallsOfTheFaultyLedgerAreRecorded() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let store = try await ledger.open()
    _ = try await store.records(of: ["a", "b"])
    _ = try await store.exchange([], leasing: nil, at: Date(timeIntervalSince1970: 0))
    try await store.close()
    #expect(ledger.calls == [.open, .records, .exchange, .close])
  }
}
