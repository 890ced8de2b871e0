#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipePOSIX
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Several users of one file: the downloads that each holds, and what happens to them when a user ends.
  @Suite(.endsHangs)
  struct SharingTests {
    /// Leases at most `count` downloads.
    private func lease(_ store: any LedgerStore, _ count: Int) async throws -> [DownloadRecord] {
      let left = Mutex(count)
      return try await store.lease(
        LeaseRequest(now: start, until: time(60)) { _ in
          left.withLock { left in
            left -= 1
            return left >= 0 ? .take : .stop
          }
        })
    }

    /// Several openings migrate the tables at once; an opening that finds a migration done continues with the next one.
    @Test func aNewLedgerIsOpenedByManyAtOnce() async throws {
      try await withFolder { folder in
        for round in 0..<30 {
          try await withThrowingTaskGroup(of: (any LedgerStore).self) { group in
            for _ in 0..<4 { group.addTask { try await SQLiteLedger("\(folder)/\(round).sqlite").open() } }
            for try await store in group { try await store.close() }
          }
        }
      }
    }

    @Test func migrationsThatAnotherProcessIsAtAreNoFailure() throws {
      var applied: Set<String> = []
      var calls = 0
      func migrate() throws {
        calls += 1
        // The other opening is a migration ahead, twice.
        guard calls > 2 else {
          applied.insert("\(calls)")
          throw DatabaseError(message: "table kind already exists")
        }
        applied = ["1", "2", "3"]
      }
      try LedgerFile.migrate(migrate, applied: { applied })
      #expect(calls == 3 && applied.count == 3)
    }

    @Test func aMigrationThatFailsByItselfIsAFailure() {
      var calls = 0
      #expect(throws: DatabaseError.self) {
        try LedgerFile.migrate(
          {
            calls += 1
            throw DatabaseError(message: "disk I/O error")
          }, applied: { ["1"] })
      }
      #expect(calls == 1)
    }

    @Test func eachDownloadIsHandedOutOnce() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        var stores: [any LedgerStore] = []
        for _ in 0..<4 { stores.append(try await SQLiteLedger(path).open()) }
        _ = try await stores[0].add(try (0..<400).map { try addition(DownloadID("\($0)"), $0) }, at: start)
        let taken = try await withThrowingTaskGroup(of: [DownloadID].self) { group in
          for store in stores {
            group.addTask {
              var mine: [DownloadID] = []
              while true {
                let leased = try await lease(store, 3)
                if leased.isEmpty { return mine }
                for var record in leased {
                  record.phase = .finished
                  let isSaved = try await store.save(record, .state, at: start)
                  #expect(isSaved)
                  mine.append(record.id)
                }
              }
            }
          }
          return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(taken.count == 400)
        #expect(Set(taken).count == 400)
        #expect(try await stores[3].counts(.all) == [.finished: 400])
        for store in stores { try await store.close() }
      }
    }

    @Test func aDroppedStoreIsADeadOwner() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        var store: (any LedgerStore)? = try await ledger.open()
        _ = try await store?.add([try addition("a")], at: start)
        if let store {
          let leased = try await lease(store, 1)
          #expect(leased.count == 1)
        }
        let next = try await ledger.open()
        #expect(try await next.reclaim(at: start) == 0, "its owner is alive, and its lease has not expired")
        store = nil
        #expect(try await next.reclaim(at: start) == 1)
        #expect(try await next.record("a")?.phase == .waiting)
        try await next.close()
      }
    }

    /// A stopped process or a sleeping computer does not renew leases, but the owner is still alive.
    @Test func aLiveOwnerKeepsWhatItHoldsHoweverLateItIs() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let late = try await ledger.open()
        _ = try await late.add([try addition("a")], at: start)
        var record = try #require(try await lease(late, 1).first)
        let other = try await ledger.open()
        #expect(try await other.reclaim(at: time(100_000)) == 0)
        record.apply(.bytesComplete)
        record.apply(.stepsComplete)
        #expect(try await late.save(record, [.state, .steps], at: time(100_001)))
        #expect(try await other.record("a")?.phase == .finished)
        try await other.close()
        try await late.close()
      }
    }

    @Test func onlyTheLeaseDecidesAboutStrangers() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add([try addition("a"), try addition("b")], at: start)
        _ = try await lease(store, 2)
        var stranger = try #require(ProcessOwner(store.owner))
        stranger.boot = "another run of a machine"
        stranger.process = 1 << 30
        let names = ["a": stranger.text, "b": "some other scheme"]
        let other = try DatabaseQueue(path: path)
        for (id, owner) in names {
          try await other.write { db in
            try db.execute(sql: "INSERT INTO opening (owner) VALUES (?)", arguments: [owner])
            try db.execute(
              sql: "UPDATE download SET owner = ? WHERE id = ?", arguments: [db.lastInsertedRowID, id])
          }
        }
        try other.close()
        #expect(try await store.reclaim(at: time(59)) == 0)
        #expect(try await store.reclaim(at: time(60)) == 2)
        try await store.close()
      }
    }

    /// A file is one ledger even if it is opened by different paths; another file is another ledger.
    @Test func storesOfOneFileHearOfEachOther() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let first = try await SQLiteLedger(path).open()
        try FileManager.default.createSymbolicLink(atPath: "\(folder)/link", withDestinationPath: folder)
        let stranger = try await SQLiteLedger("\(folder)/other.sqlite").open()
        _ = try await stranger.add([try addition("a")], at: start)
        var heard = try #require(first.changesByOthers).makeAsyncIterator()
        for (index, other) in [path, "\(folder)/link/l.sqlite", "\(folder)/./l.sqlite"].enumerated() {
          let second = try await SQLiteLedger(other).open()
          _ = try await second.add([try addition(DownloadID("\(index)"))], at: start)
          #expect(await heard.next(isolation: #isolation) != nil, "\(other)")
          try await second.close()
        }
        try await first.close()
        #expect(await heard.next(isolation: #isolation) == nil, "changes of another ledger are not reported")
        try await stranger.close()
      }
    }

    @Test func theQueueIsReadThroughIndexes() async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: .process, lockTimeout: .seconds(5)).open()
        func plan(_ sql: String) async throws -> String {
          try await pool.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql).map { $0["detail"] as String }.joined(
              separator: "; ")
          }
        }
        for text in [StatementText.waitingKeys, .nextLane, .nextOwnLane] {
          let plan = try await plan(text.sql.replacing("?", with: "1"))
          #expect(plan.hasPrefix("SEARCH") && plan.contains("USING INDEX download_ready"), "\(plan)")
          #expect(!plan.contains("TEMP B-TREE"), "leases do not sort: \(plan)")
        }
        for text in [StatementText.promoteDue, .promoteJumped, .nextDue] {
          let plan = try await plan(text.sql.replacing("?", with: "1"))
          #expect(plan.hasPrefix("SEARCH") && plan.contains("download_delayed"), "\(plan)")
        }
        for phase in DownloadState.Phase.allCases {
          for place in LedgerConnection.places(of: phase) {
            let plan = try await plan("SELECT generation FROM \(place.from) WHERE \(place.where)")
            #expect(plan.contains("INDEX download_"), "\(phase): \(plan)")
          }
        }
        try pool.close()
      }
    }

    @Test func countsFollowARecordThroughItsLife() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        let other = try await SQLiteLedger(path).open()
        _ = try await store.add([try addition("a", 1), try addition("b", 2)], at: start)
        var record = try #require(try await lease(store, 1).first)
        #expect(try await other.counts(.all) == [.waiting: 1, .transferring: 1])
        record.phase = .processing
        #expect(try await store.save(record, [.state, .steps], at: start))
        #expect(try await other.counts(.all) == [.waiting: 1, .processing: 1])
        record.phase = .finished
        #expect(try await store.save(record, [.state, .steps, .checkpoint], at: start))
        #expect(try await !store.save(record, .state, at: start), "it is no longer held")
        #expect(try await other.counts(.all) == [.waiting: 1, .finished: 1])
        try await other.close()
        try await store.close()
      }
    }
  }
#endif
