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
    private let lastExchange = Atomic<Int64>(0)
    /// The number of the last other change that was tried.
    private let lastChange = Atomic<Int64>(0)

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

    /// Makes a change with a number, or gives its answer again.
    private func change<Value: Sendable>(
      _ number: Int64?, _ answer: LedgerAnswer<Value>,
      _ body: @escaping @Sendable (LedgerConnection) throws -> Value
    ) async throws -> Value {
      let isRepeated = number.map { lastChange.exchange($0, ordering: .relaxed) == $0 } ?? false
      return try await change(
        { connection in
          if isRepeated, let number, let kept = try connection.lastChange(number) {
            return try answer.again(kept) { try $0.compactMap { try connection.record($0) } }
          }
          let value = try body(connection)
          if let number, answer.hasChanged(value) {
            try connection.keep(try answer.kept(value), number, in: .keepChange)
          }
          return value
        }, concernsOthers: answer.hasChanged)
    }

    func hasChangesByOtherProcesses() async throws -> Bool? {
      try await queue.look { try $0.lookForNews() }
    }

    func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
      let now = now.asStored
      return try await change(number, .additions(additions, at: now)) { try $0.add(additions, at: now) }
    }

    func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
      let now = now.asStored
      return try await change({ try $0.restore(records, at: now) }) { $0.contains(true) }
    }

    func update(
      _ id: DownloadID, at now: Date, number: Int64?,
      _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? {
      let now = now.asStored
      return try await refusable {
        try await self.change(number, .update(id, at: now)) { connection in
          try connection.update(id, at: now) { record in
            do { try change(&record) } catch { throw RefusedChange(error: error) }
          }
        }
      }
    }

    func update(
      _ selection: LedgerSelection, at now: Date, number: Int64?,
      _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> LedgerBulkResult {
      let now = now.asStored
      return try await refusable {
        try await self.change(number, .bulk) { connection in
          try connection.update(selection, at: now) { record in
            do { try change(&record) } catch { throw RefusedChange(error: error) }
          }
        }
      }
    }

    /// An error that a change throws is the caller's, not a failure of the ledger.
    private func refusable<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
      do { return try await body() } catch let refused as RefusedChange { throw refused.error }
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
      let isRepeated = number.map { lastExchange.exchange($0, ordering: .relaxed) == $0 } ?? false
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
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
    ) async throws -> LedgerBulkResult {
      guard event != .leased else {
        throw LedgerFault.error("only a lease makes a download active: call lease(_:) instead")
      }
      return try await change(number, .bulk) { try $0.transition(selection, event, at: now) }
    }

    func remove(
      _ selection: LedgerSelection, number: Int64?,
      leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
    ) async throws -> LedgerRemoval {
      try await change(number, .removal) { try $0.remove(selection, leaving: choose) }
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
