#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Concurrent changes are committed together and fail individually.
  @Suite(.endsHangs)
  struct CommitQueueTests {
    private struct Refused: Error {}

    /// A database whose writer is blocked until it is released, so that changes are collected.
    private func gather(
      _ queue: CommitQueue, _ changes: [@Sendable () async throws -> Void]
    ) async throws -> [Bool] {
      let gate = DispatchSemaphore(value: 0)
      return try await withThrowingTaskGroup(of: (Int, Bool).self) { group in
        // The first change is a batch of its own, and blocks the writer.
        group.addTask {
          try await queue.commit { _ in gate.wait() }
          return (changes.count, true)
        }
        while !queue.isCommitting { await Task.yield() }
        for (index, change) in changes.enumerated() {
          group.addTask {
            do {
              try await change()
              return (index, true)
            } catch { return (index, false) }
          }
          while queue.waitingCount <= index { await Task.yield() }
        }
        gate.signal()
        let outcome = try await group.reduce(into: Array(repeating: false, count: changes.count + 1)) {
          $0[$1.0] = $1.1
        }
        return Array(outcome.dropLast())
      }
    }

    private func withQueue(_ body: (DatabasePool, CommitQueue) async throws -> Void) async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: .process, lockTimeout: .seconds(5)).open()
        try await body(pool, CommitQueue(pool: pool, path: "\(folder)/l", owner: "me"))
        try pool.close()
      }
    }

    private func ids(_ pool: DatabasePool) async throws -> [String] {
      try await pool.read { try String.fetchAll($0, sql: "SELECT id FROM download ORDER BY generation") }
    }

    private func tally(_ pool: DatabasePool) async throws -> Int? {
      try await pool.read { try Int.fetchOne($0, sql: "SELECT count FROM tally WHERE phase = 'waiting'") }
    }

    @Test func changesThatWaitTogetherShareACommit() async throws {
      try await withQueue { pool, queue in
        let commits = Mutex(0)
        try await pool.writeWithoutTransaction { db in
          db.trace { event in if "\(event)".hasPrefix("COMMIT") { commits.withLock { $0 += 1 } } }
        }
        let outcome = try await gather(
          queue,
          (0..<20).map { index in
            { try await queue.commit { _ = try $0.add(addition(DownloadID("\(index)")), at: start) } }
          })
        #expect(outcome == Array(repeating: true, count: 20))
        #expect(try await ids(pool) == (0..<20).map(String.init), "changes are made in the order of the calls")
        #expect(commits.withLock { $0 } == 2)
        #expect(try await tally(pool) == 20)
      }
    }

    @Test func anExchangeIsOneCommitWithoutSavepoints() async throws {
      try await withQueue { pool, queue in
        try await queue.commit { connection in
          for index in 0..<32 { _ = try connection.add(try addition(DownloadID("\(index)"), Int64(index)), at: start) }
        }
        let left = Mutex(16)
        let request = LeaseRequest(now: start, until: time(60)) { _ in
          left.withLock { left in
            left -= 1
            return left >= 0 ? .take : .stop
          }
        }
        let held = try await queue.commit { try $0.exchange([], request, at: start) }.leased
        #expect(held.count == 16)
        let statements = Mutex<[String]>([])
        try await pool.writeWithoutTransaction { db in
          db.trace { event in statements.withLock { $0.append(String("\(event)".prefix(9))) } }
        }
        left.withLock { $0 = 16 }
        let saves = held.map { record in
          var record = record
          record.apply(.bytesComplete)
          record.apply(.stepsComplete)
          return LedgerSave(record, [.state, .steps, .checkpoint])
        }
        let exchange = try await queue.commit { try $0.exchange(saves, request, at: start) }
        #expect(exchange.saved == Array(repeating: true, count: 16))
        #expect(exchange.leased.count == 16)
        let counts = statements.withLock { Dictionary(grouping: $0, by: \.self).mapValues(\.count) }
        #expect(counts["BEGIN IMM"] == 1)
        #expect(counts["COMMIT"] == 1)
        #expect(counts["SAVEPOINT"] == nil)
        #expect(counts["UPDATE do"] == 32, "one for each save and each lease: \(counts)")
      }
    }

    @Test func aFailedChangeFailsAlone() async throws {
      try await withQueue { pool, queue in
        let outcome = try await gather(
          queue,
          [
            { try await queue.commit { _ = try $0.add(addition("a"), at: start) } },
            {
              try await queue.commit {
                _ = try $0.add(addition("half"), at: start)
                throw Refused()
              }
            },
            { try await queue.commit { _ = try $0.add(addition("b"), at: start) } },
          ])
        #expect(outcome == [true, false, true])
        #expect(try await ids(pool) == ["a", "b"])
        #expect(try await tally(pool) == 2)
      }
    }

    @Test func aLeaseThatFailsHalfwayLeasesNothing() async throws {
      try await withQueue { pool, queue in
        try await queue.commit { connection in
          for id in ["a", "b"] { _ = try connection.add(try addition(DownloadID(id)), at: start) }
        }
        // Unlike a violated constraint, this error does not undo the statement's changes.
        try await pool.write { db in
          try db.execute(
            sql: """
              CREATE TRIGGER refuse BEFORE UPDATE OF owner ON download WHEN NEW.id = 'b'
              BEGIN SELECT RAISE(FAIL, 'refused'); END
              """)
        }
        let outcome = try await gather(
          queue,
          [
            { try await queue.commit { _ = try $0.add(addition("c"), at: start) } },
            {
              _ = try await queue.commit {
                try $0.lease(LeaseRequest(now: start, until: time(60)) { _ in .take })
              }
            },
          ])
        #expect(outcome == [true, false])
        let owners = try await pool.read { try Int?.fetchAll($0, sql: "SELECT owner FROM download") }
        #expect(owners == [nil, nil, nil])
        #expect(try await tally(pool) == 3)
      }
    }

    @Test func aLostTransactionFailsEveryChange() async throws {
      try await withQueue { pool, queue in
        let outcome = try await gather(
          queue,
          [
            { try await queue.commit { _ = try $0.add(addition("a"), at: start) } },
            {
              try await queue.commit {
                // SQLite does the same if the disk is full.
                $0.rollBack()
                throw Refused()
              }
            },
            { try await queue.commit { _ = try $0.add(addition("b"), at: start) } },
          ])
        #expect(outcome == [false, false, false])
        #expect(try await ids(pool) == [])
        try await queue.commit { _ = try $0.add(addition("c"), at: start) }
        #expect(try await ids(pool) == ["c"], "the queue works after the failure")
        #expect(try await tally(pool) == 1)
      }
    }

    @Test func aFailedCommitFailsEveryChange() async throws {
      try await withQueue { pool, queue in
        // A deferred constraint, which is checked by COMMIT.
        try await pool.write { db in
          try db.execute(sql: "CREATE TABLE child (parent INTEGER REFERENCES download DEFERRABLE INITIALLY DEFERRED)")
        }
        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA foreign_keys = ON") }
        let outcome = try await gather(
          queue,
          [
            { try await queue.commit { _ = try $0.add(addition("a"), at: start) } },
            { try await queue.commit { try $0.db.execute(sql: "INSERT INTO child VALUES (99)") } },
          ])
        #expect(outcome == [false, false])
        #expect(try await ids(pool) == [])
        try await queue.commit { _ = try $0.add(addition("b"), at: start) }
        #expect(try await ids(pool) == ["b"])
        #expect(try await tally(pool) == 1)
      }
    }
  }
#endif
