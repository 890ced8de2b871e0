#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import DownpipePOSIX
  import Foundation
  import GRDB
  import Synchronization

  /// The store of a ``SQLiteLedger``: one opening of the file, with an owner of its own.
  final class SQLiteLedgerStore: LedgerStore {
    let owner: String
    let leasesRates = true
    let changesByOthers: AsyncStream<Void>?
    private let identity: ProcessOwner
    private let pool: DatabasePool
    private let queue: CommitQueue
    private let path: String
    private let watchers: LedgerWatchers
    private let hasRanked = Atomic(false)
    /// The number of the last exchange that was tried.
    private let lastNumber = Atomic<Int64>(0)
    /// The number of the last removal that was tried.
    private let lastRemoval = Atomic(0)

    init(pool: DatabasePool, path: String) {
      identity = .new()
      owner = identity.text
      self.pool = pool
      self.path = path
      queue = CommitQueue(pool: pool, path: path, owner: owner)
      watchers = OpenLedgers.watchers(of: path)
      changesByOthers = watchers.stream(for: owner)
    }

    /// A deallocated store saves nothing more, so its owner ends.
    deinit {
      identity.end()
      watchers.end(owner)
    }

    /// Reads on a connection other than the writer's, with everything that this store has committed.
    private func read<Value: Sendable>(
      _ body: @escaping @Sendable (LedgerConnection) throws -> Value
    ) async throws -> Value {
      guard !queue.isClosed else { throw LedgerFault.closed }
      let path = path
      return try await withCheckedThrowingContinuation { continuation in
        pool.asyncRead { result in
          do {
            continuation.resume(returning: try body(LedgerConnection(try result.get())))
          } catch {
            continuation.resume(throwing: LedgerFault.translate(error, path: path))
          }
        }
      }
    }

    /// Makes a change, and informs the other stores and processes if it is relevant to them.
    private func change<Value: Sendable>(
      _ body: @escaping @Sendable (LedgerConnection) throws -> Value,
      concernsOthers: @escaping @Sendable (Value) -> Bool
    ) async throws -> Value {
      let value = try await queue.commit { connection in
        let value = try body(connection)
        connection.noteNews(concernsOthers(value))
        return value
      }
      if concernsOthers(value) { watchers.tell(changedBy: owner) }
      return value
    }

    func hasChangesByOtherProcesses() async throws -> Bool? {
      try await queue.look { try $0.lookForNews() }
    }

    func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
      let now = now.asStored
      return try await change({ try $0.add(additions, at: now) }) { $0.contains { $0.isChanged(at: now) } }
    }

    func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
      let now = now.asStored
      return try await change({ try $0.restore(records, at: now) }) { $0.contains(true) }
    }

    func update(
      _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? {
      let now = now.asStored
      // An error thrown by the change is the caller's, not a failure of the ledger.
      let result: Result<DownloadRecord?, any Error> = try await self.change { connection in
        var refusal: (any Error)?
        do {
          return .success(
            try connection.update(id, at: now) { record in
              do { try change(&record) } catch {
                refusal = error
                throw error
              }
            })
        } catch {
          if let refusal { return .failure(refusal) }
          throw error
        }
      } concernsOthers: {
        (try? $0.get())??.updatedAt == now
      }
      return try result.get()
    }

    func update(
      _ selection: LedgerSelection, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> LedgerBulkResult {
      let now = now.asStored
      do {
        return try await self.change { connection in
          try connection.update(selection, at: now) { record in
            do { try change(&record) } catch { throw RefusedChange(error: error) }
          }
        } concernsOthers: {
          $0.count > 0
        }
      } catch let refused as RefusedChange { throw refused.error }
    }

    func record(_ id: DownloadID) async throws -> DownloadRecord? {
      try await read { try $0.record(id) }
    }

    func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
      try await read { connection in
        try ids.compactMap { id in
          do { return try connection.record(id) } catch is DamagedRow { return nil }
        }
      }
    }

    func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
      try await read { try $0.records(query) }
    }

    func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
      try await read { try $0.records(after: generation, limit: limit) }
    }

    func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
      try await read { try $0.counts(filter) }
    }

    func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
      try await read { try $0.totals(filter) }
    }

    func unsettledMoves() async throws -> [DownloadRecord] {
      try await read { try $0.unsettledMoves() }
    }

    func damaged() async throws -> [DamagedRecord] {
      try await read { try $0.damaged() }
    }

    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      let request = request.asStored
      return try await queue.commit { try $0.lease(request) }
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      let endsRun = LedgerSave(record, fields).endsRun
      return try await change {
        try $0.save(record, fields, at: now)
      } concernsOthers: {
        $0 && endsRun
      }
    }

    func exchange(
      _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
    ) async throws -> LedgerExchange {
      let request = request?.asStored
      let isRepeated = number.map { lastNumber.exchange($0, ordering: .relaxed) == $0 } ?? false
      return try await change { connection in
        if isRepeated, let number, let answer = try connection.answer(number, saves) { return answer }
        let exchange = try connection.exchange(saves, request, at: now)
        if let number, exchange.hasChanges { try connection.keep(exchange.kept(for: saves), number) }
        return exchange
      } concernsOthers: {
        zip(saves, $0.saved).contains { $0.endsRun && $1 }
      }
    }

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) async throws -> LedgerBulkResult {
      guard event != .leased else {
        throw LedgerFault.error("only a lease makes a download active: call lease(_:) instead")
      }
      return try await change({ try $0.transition(selection, event, at: now) }) { $0.count > 0 }
    }

    func remove(
      _ selection: LedgerSelection, number: Int?,
      leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
    ) async throws -> LedgerRemoval {
      let name = number.map { "\(owner)/\($0)" }
      let isRepeated = number.map { lastRemoval.exchange($0, ordering: .relaxed) == $0 } ?? false
      return try await change { connection in
        if isRepeated, let name, let removal = try connection.removed(name) { return removal }
        return try connection.remove(selection, name, leaving: choose)
      } concernsOthers: {
        $0.count > 0
      }
    }

    func deletions(
      at location: String?, in numbers: ClosedRange<Int64>, limit: Int
    ) async throws -> [LedgerDeletion] {
      try await read { try $0.deletions(at: location, in: numbers, limit: limit) }
    }

    func forget(deletions numbers: [Int64]) async throws {
      try await queue.commit { try $0.forget(deletions: numbers) }
    }

    func renewLeases(until lease: Date) async throws {
      try await queue.commit { try $0.renewLeases(until: lease) }
    }

    func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
      try await queue.commit { try $0.leaseRates(wants, for: duration, at: now) }
    }

    func reclaim(at now: Date) async throws -> Int {
      try await change { connection in
        var standings: [Int64: ProcessOwner.Standing] = [:]
        return try connection.giveBack(at: now) { owner, lease in
          let standing = try standings[owner] ?? ProcessOwner(connection.owner(owner))?.standing ?? .unknown
          standings[owner] = standing
          return switch standing {
          case .alive: false
          case .gone: true
          case .unknown: lease.map { $0 <= now } ?? true
          }
        }
      } concernsOthers: {
        $0 > 0
      }
    }

    func nextDue(after now: Date) async throws -> Date? {
      try await read { try $0.nextDue(after: now) }
    }

    func isBusy() async throws -> Bool {
      try await read { try $0.isBusy() }
    }

    func rank(by ranking: Ranking) async throws {
      let isLater = hasRanked.exchange(true, ordering: .relaxed)
      guard let number = try await queue.commit({ try $0.beginRanking(by: ranking, always: isLater) }) else { return }
      var last = Int64.min
      while true {
        let page = try await read { [last] in try $0.rankable(after: last) }
        guard let end = page.last else { break }
        guard try await queue.commit({ try $0.rank(page, as: number) }) else { return }
        // What is left is done by the next ranking.
        try Task.checkCancellation()
        last = end
      }
      try await queue.commit { try $0.endRanking(as: number) }
    }

    func settings() async throws -> Data? {
      try await read { try $0.setting(Self.settingsName) }.map { Data($0.utf8) }
    }

    func keep(settings: Data) async throws {
      let text = String(decoding: settings, as: UTF8.self)
      try await queue.commit { try $0.set(Self.settingsName, to: text) }
    }

    /// The row with the settings of the app. The other rows are the ledger's own.
    private static let settingsName = "settings of the app"

    func close() async throws {
      let pool = pool
      let path = path
      let queue = queue
      guard !queue.isClosed else { return }
      let result: Result<Void, any Error>
      do {
        _ = try await change({ try $0.leave() }) { $0 > 0 }
        result = .success(())
      } catch { result = .failure(error) }
      // The connections are closed even after a failure: what was not given back is freed by the end of the owner and
      // of the leases.
      guard queue.close() else { return }
      identity.end()
      watchers.end(owner)
      try await BlockingThreads.run(.urgent) { _ in
        do {
          try? pool.writeWithoutTransaction { db in
            queue.forgetConnection(db)
            // Copies the log into the file. A program that is reading may keep the log from becoming empty.
            try db.execute(sql: "PRAGMA busy_timeout = 200")
            _ = try db.checkpoint(.truncate)
          }
          // The readers close first: the log is only deleted if the last connection to close may write.
          pool.releaseMemory()
          try pool.close()
        } catch { throw LedgerFault.translate(error, path: path) }
      }
      try result.get()
    }
  }

  extension LeaseRequest {
    fileprivate var asStored: LeaseRequest {
      var copy = self
      copy.now = now.asStored
      return copy
    }
  }

  extension Date {
    /// The date as it is read back from the file: seconds since 1970 are less precise than seconds since 2001.
    fileprivate var asStored: Date { Date(timeIntervalSince1970: timeIntervalSince1970) }
  }
#endif
