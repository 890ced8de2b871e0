import DownpipeCore
import Foundation
import Synchronization

/// A ledger whose records another owner can take, as if each lease had expired and each record had been removed.
struct StolenLedger: Ledger {
  private final class Flag: Sendable {
    let isSet = Atomic(false)
  }

  private let base: any Ledger
  private let flag = Flag()

  init(_ base: any Ledger) { self.base = base }

  /// Makes all records disappear.
  func steal() { flag.isSet.store(true, ordering: .sequentiallyConsistent) }

  func open() async throws -> any LedgerStore { Store(base: try await base.open(), flag: flag) }

  private struct Store: LedgerStore {
    let base: any LedgerStore
    let flag: Flag
    var isStolen: Bool { flag.isSet.load(ordering: .sequentiallyConsistent) }

    var owner: String { base.owner }
    func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
      try await base.add(additions, at: now)
    }
    func record(_ id: DownloadID) async throws -> DownloadRecord? { isStolen ? nil : try await base.record(id) }
    func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
      isStolen ? [] : try await base.records(query)
    }
    func counts(tag: String?) async throws -> [DownloadState.Phase: Int] { try await base.counts(tag: tag) }
    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      isStolen ? [] : try await base.lease(request)
    }
    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      isStolen ? false : try await base.save(record, fields, at: now)
    }
    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) async throws -> LedgerTransitionResult { try await base.transition(selection, event, at: now) }
    func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord] {
      try await base.remove(selection, limit: limit)
    }
    func renewLeases(until lease: Date) async throws { try await base.renewLeases(until: lease) }
    func reclaim(at now: Date) async throws -> Int { try await base.reclaim(at: now) }
    func nextDue(after now: Date) async throws -> Date? { try await base.nextDue(after: now) }
    func update(
      _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? { try await base.update(id, at: now, change) }
    func totals(tag: String?) async throws -> DownloadTotals { try await base.totals(tag: tag) }
    func unsettledMoves() async throws -> [DownloadRecord] { try await base.unsettledMoves() }
    var changesByOthers: AsyncStream<Void>? { base.changesByOthers }
    func rank(by ranking: Ranking) async throws { try await base.rank(by: ranking) }
    func close() async throws { try await base.close() }
  }
}
