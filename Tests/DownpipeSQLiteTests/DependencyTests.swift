#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// Downloads that wait for others cost leases nothing, and are released by index and in the same transaction.
  @Suite(.endsHangs)
  struct DependencyTests {
    private func addition(_ id: DownloadID, _ order: Int, after: Set<DownloadID> = []) throws -> LedgerAddition {
      var addition = try DownpipeSQLiteTests.addition(id, Int64(order))
      addition.request.after = after
      return addition
    }

    private func lease(_ store: any LedgerStore, _ count: Int = 1) async throws -> [DownloadRecord] {
      let left = Watched(count)
      return try await store.lease(
        LeaseRequest(now: start, until: time(60)) { _ in
          left.update { left in
            left -= 1
            return left >= 0 ? .take : .stop
          }
        })
    }

    @Test("A ledger of the last version is migrated, and its downloads can wait for others")
    func migration() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { try $0.execute(sql: OldLedger.dump) }
        try Schema.migrator.migrate(old, upTo: "6: deadlines")
        try old.close()
        let store = try await SQLiteLedger(path).open()
        let records = try await store.records(DownloadQuery())
        #expect(records.count == 4 && records.allSatisfy { $0.request.after.isEmpty && $0.waitsFor.isEmpty })
        #expect(try await store.damaged() == [])
        #expect(try await store.isBusy())
        let (finished, waiting) = (records[0], records[3])
        #expect(finished.phase == .finished && waiting.phase == .waiting)
        let changed = try await store.update(waiting.id, at: start) { $0.request.after = [finished.id, "new"] }
        #expect(changed?.waitsFor == ["new"])
        #expect(try await lease(store) == [])
        _ = try await store.add([try addition("new", 1)], at: start)
        var new = try #require(try await lease(store).first)
        new.phase = .finished
        #expect(try await store.save(new, .state, at: start))
        #expect(try await lease(store).map(\.id) == [waiting.id])
        try await store.close()
      }
    }

    @Test("A store releases the downloads of another one, and a killed process releases none")
    func twoStores() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let first = try await SQLiteLedger(path).open()
        let second = try await SQLiteLedger(path).open()
        _ = try await first.add([try addition("b", 1, after: ["a"]), try addition("a", 2)], at: start)
        // The first store has read its lanes, which the other one's change must make stale.
        #expect(try await lease(first, 0) == [])
        var a = try #require(try await lease(second).first)
        #expect(a.id == "a")
        a.phase = .finished
        // A transaction that does not commit, as in a killed process.
        let pool = try DatabasePool(path: path)
        try await pool.writeWithoutTransaction { [a] db in
          try db.execute(sql: "BEGIN IMMEDIATE")
          let connection = LedgerConnection(db, owner: second.owner)
          #expect(try connection.save(a, .state, at: start))
          #expect(try connection.record("b")?.waitsFor == [])
          try db.execute(sql: "ROLLBACK")
        }
        try pool.close()
        #expect(try await first.record("a")?.phase == .transferring)
        #expect(try await first.record("b")?.waitsFor == ["a"])
        var heard = try #require(first.changesByOthers).makeAsyncIterator()
        #expect(try await second.save(a, .state, at: start))
        #expect(await heard.next(isolation: #isolation) != nil)
        #expect(try await lease(first).map(\.id) == ["b"])
        try await first.close()
        try await second.close()
      }
    }

    @Test("The cost of a lease and of finishing a download does not grow with the downloads that wait for others")
    func cost() async throws {
      try await withFolder { folder in
        var work: [Int] = []
        for count in [100, 10_000] {
          let path = "\(folder)/\(count).sqlite"
          let store = try await SQLiteLedger(path).open()
          // They rank before the downloads that are ready.
          let held = try (0..<count).map { try addition(DownloadID("held \($0)"), $0, after: ["nowhere"]) }
          let ready = try (0..<3).map { try addition(DownloadID("ready \($0)"), count + $0) }
          _ = try await store.add(held + ready + [try addition("last", count + 9, after: ["ready 0"])], at: start)
          try await store.close()
          let pool = try DatabasePool(path: path)
          let steps = try await pool.writeWithoutTransaction { db in
            let connection = LedgerConnection(db, owner: "test")
            try connection.begin()
            _ = try connection.nextDue(after: start)
            let left = Watched(1)
            let request = LeaseRequest(now: start, until: time(60)) { _ in
              left.update { left in
                left -= 1
                return left >= 0 ? .take : .stop
              }
            }
            var record = try #require(try connection.lease(request).first)
            #expect(record.id == "ready 0")
            record.phase = .finished
            #expect(try connection.save(record, [.state, .steps], at: start))
            #expect(try connection.record("last")?.waitsFor == [])
            #expect(try connection.isBusy())
            try connection.commit()
            return connection.workDone
          }
          work.append(steps)
          try pool.close()
        }
        #expect(work[1] < work[0] + 200, "\(work)")
      }
    }

    @Test("A chain is added without a search, in either order, and a long one is not closed")
    func chain() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        let count = DependencyCycle.limit + 10
        func up(_ number: Int) -> DownloadID { DownloadID("up \(number)") }
        func down(_ number: Int) -> DownloadID { DownloadID("down \(number)") }
        let upwards = try (0..<count).map { try addition(up($0), $0, after: $0 == 0 ? [] : [up($0 - 1)]) }
        _ = try await store.add(upwards, at: start)
        let downwards = try (0..<count).reversed().map { try addition(down($0), $0, after: [down($0 - 1)]) }
        _ = try await store.add(downwards, at: start)
        #expect(try await lease(store, 5).map(\.id) == ["up 0"])
        for (id, last) in [(up(0), up(count - 1)), (up(100), down(count - 1))] {
          let error = await #expect(throws: DownloadError.self) {
            try await store.update(id, at: start) { $0.request.after.insert(last) }
          }
          #expect(error?.code == .invalidRequest)
          #expect(error?.message.contains("more than 10000 downloads in turn") == true, "\(error?.message ?? "")")
        }
        try await store.close()
      }
    }

    @Test("Removing downloads leaves no dependency behind")
    func removal() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add(
          [try addition("a", 1), try addition("b", 2, after: ["a", "x"]), try addition("c", 3, after: ["b"])],
          at: start)
        _ = try await store.remove(.ids(["a", "b"]))
        #expect(try await store.record("c")?.waitsFor == ["b"])
        _ = try await store.remove(.all)
        try await store.close()
        let queue = try DatabaseQueue(path: path)
        #expect(try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM dependency") } == 0)
        try queue.close()
      }
    }

    @Test("Bulk transitions and queries include downloads that wait for others, once")
    func bulk() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        _ = try await store.add(
          [try addition("a", 1), try addition("b", 2, after: ["a"]), try addition("c", 3, after: ["b"])], at: start)
        #expect(try await store.records(DownloadQuery(phases: [.waiting])).map(\.id) == ["a", "b", "c"])
        for event in [Lifecycle.Event.resume, .restart, .pauseAll, .resumeTogether] {
          #expect(try await store.transition(.all, event, at: start).count == 3, "\(event)")
          #expect(try await store.counts(.all) == [event == .pauseAll ? .paused : .waiting: 3])
        }
        #expect(try await lease(store, 5).map(\.id) == ["a"])
        try await store.close()
      }
    }
  }
#endif
