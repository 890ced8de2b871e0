#if SQLite
  import DownpipeCore
  import DownpipeOwner
  import Foundation
  import GRDB

  /// One opening of a ``SQLiteLedger``.
  final class SQLiteLedgerStore: LedgerStore {
    let owner: String
    private let identity: ProcessOwner
    private let pool: DatabasePool
    private let queue: CommitQueue
    private let path: String

    init(pool: DatabasePool, path: String) {
      identity = .new()
      owner = identity.text
      self.pool = pool
      self.path = path
      queue = CommitQueue(pool: pool, path: path, owner: owner)
    }

    /// A store that is dropped cannot save any more: its owner is gone.
    deinit { identity.end() }

    /// Reads on a connection of its own, beside the writer. What this store has committed is seen.
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

    func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
      let now = now.asStored
      return try await queue.commit { connection in try additions.map { try connection.add($0, at: now) } }
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

    func counts(tag: String?) async throws -> [DownloadState.Phase: Int] {
      try await read { try $0.counts(tag: tag) }
    }

    func damaged() async throws -> [DamagedRecord] {
      try await read { try $0.damaged() }
    }

    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      let request = request.asStored
      return try await queue.commit { try $0.lease(request) }
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      try await queue.commit(isSingleStatement: fields.isDisjoint(with: [.request, .link])) {
        try $0.save(record, fields, at: now)
      }
    }

    func exchange(
      _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
    ) async throws -> LedgerExchange {
      let request = request?.asStored
      return try await queue.commit { try $0.exchange(saves, request, at: now) }
    }

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) async throws -> LedgerTransitionResult {
      guard event != .leased else { throw LedgerFault.error("only a lease makes a download active: lease it instead") }
      return try await queue.commit { try $0.transition(selection, event, at: now) }
    }

    func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord] {
      try await queue.commit { try $0.remove(selection, limit: limit) }
    }

    func renewLeases(until lease: Date) async throws {
      try await queue.commit { try $0.renewLeases(until: lease) }
    }

    func reclaim(at now: Date) async throws -> Int {
      try await queue.commit { connection in
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
      }
    }

    func nextDue(after now: Date) async throws -> Date? {
      try await read { try $0.nextDue(after: now) }
    }

    func rerank(_ rank: @escaping @Sendable (RankingContext) -> Rank) async throws {
      try await queue.commit { try $0.rerank(rank) }
    }

    func close() async throws {
      let pool = pool
      let path = path
      let queue = queue
      guard !queue.isClosed else { return }
      let result: Result<Void, any Error>
      do {
        try await queue.commit { try $0.leave() }
        result = .success(())
      } catch { result = .failure(error) }
      // Whatever came of it, the connections are closed: the lease and the owner's end do the rest.
      guard queue.close() else { return }
      identity.end()
      try await onBlockingThread {
        do {
          try? pool.writeWithoutTransaction { db in
            queue.forgetConnection(db)
            // Moves the log into the file; a program that is reading may keep it from becoming empty.
            try db.execute(sql: "PRAGMA busy_timeout = 200")
            _ = try db.checkpoint(.truncate)
          }
          // The readers first: only a connection that may write takes the log away when it closes last.
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
    /// The time as it comes back from the file: a count from 1970 is a little coarser than one from 2001.
    fileprivate var asStored: Date { Date(timeIntervalSince1970: timeIntervalSince1970) }
  }
#endif
