#if SQLite
  import DownpipeCore
  import Foundation

  /// A ledger that reports each saved checkpoint to the ``Pace`` of the run.
  struct PacedLedger: Ledger {
    let base: any Ledger
    let pace: Pace

    var name: String { base.name }

    func open() async throws -> any LedgerStore { Store(base: try await base.open(), pace: pace) }

    private struct Store: LedgerStore {
      let base: any LedgerStore
      let pace: Pace

      var owner: String { base.owner }

      func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
        defer { if fields.contains(.checkpoint) { pace.saved(record.checkpoint.ranges.prefixLength) } }
        return try await base.save(record, fields, at: now)
      }

      func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
        try await base.add(additions, at: now)
      }
      func record(_ id: DownloadID) async throws -> DownloadRecord? { try await base.record(id) }
      func records(_ query: DownloadQuery) async throws -> [DownloadRecord] { try await base.records(query) }
      func counts(tag: String?) async throws -> [DownloadState.Phase: Int] { try await base.counts(tag: tag) }
      func damaged() async throws -> [DamagedRecord] { try await base.damaged() }
      func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] { try await base.lease(request) }
      func exchange(
        _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
      ) async throws -> LedgerExchange {
        defer {
          for save in saves where save.fields.contains(.checkpoint) {
            pace.saved(save.record.checkpoint.ranges.prefixLength)
          }
        }
        return try await base.exchange(saves, leasing: request, at: now)
      }
      func transition(
        _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
      ) async throws -> LedgerTransitionResult {
        try await base.transition(selection, event, at: now)
      }
      func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord] {
        try await base.remove(selection, limit: limit)
      }
      func renewLeases(until lease: Date) async throws { try await base.renewLeases(until: lease) }
      func reclaim(at now: Date) async throws -> Int { try await base.reclaim(at: now) }
      func nextDue(after now: Date) async throws -> Date? { try await base.nextDue(after: now) }
      func update(
        _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
      ) async throws -> DownloadRecord? { try await base.update(id, at: now, change) }
      func totals(tag: String?) async throws -> LedgerTotals { try await base.totals(tag: tag) }
      func unsettledMoves() async throws -> [DownloadRecord] { try await base.unsettledMoves() }
      var changesByOthers: AsyncStream<Void>? { base.changesByOthers }
      func rank(by ranking: Ranking) async throws { try await base.rank(by: ranking) }
      func close() async throws { try await base.close() }
    }
  }
#endif
