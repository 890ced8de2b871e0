#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Operations on many records are one transaction, and find their records through indexes.
  @Suite(.endsHangs)
  struct BulkAtomicityTests {
    private func filled(_ store: any LedgerStore, _ count: Int) async throws {
      _ = try await store.add(
        try (0..<count).map { index in
          let request = try DownloadRequest(
            "https://host\(index % 10).example/\(index)", id: DownloadID("\(index)"),
            intent: index % 3 == 0 ? .silent : .userInitiated, tags: ["old"])
          return LedgerAddition(request: request, arrival: Int64(index))
        }, at: start)
    }

    private func priorities(_ store: any LedgerStore) async throws -> Set<Priority> {
      Set(try await store.records(DownloadQuery()).map(\.request.priority))
    }

    /// The change is held in the middle of its transaction while another store of the file reads and writes.
    @Test func anotherStoreSeesAllOfAnUpdateOrNothing() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let ranking = Ranking(name: "priority") { Rank().descending($0.priority).ascending($0.arrival) }
        let first = try await ledger.open()
        let second = try await ledger.open()
        for store in [first, second] { try await store.rank(by: ranking) }
        try await filled(first, 50)
        let (reached, gate) = (Watched(false), DispatchSemaphore(value: 0))
        let calls = Mutex(0)
        let update = Task {
          try await first.update(.matching(.host("host7.example")), at: time(1)) { record in
            let call = calls.withLock { calls in
              calls += 1
              return calls
            }
            if call == 3 {
              reached.update { $0 = true }
              gate.wait()
            }
            record.request.priority = .high
            record.request.tags = ["new"]
          }
        }
        await reached.wait { $0 }
        #expect(try await priorities(second) == [.normal], "two records have been changed, but not committed")
        #expect(try await second.counts(.tag("new")) == [:])
        // Waits for the end of the transaction.
        let lease = Task {
          let left = Mutex(6)
          return try await second.lease(
            LeaseRequest(now: time(2), until: time(60)) { _ in
              left.withLock { left in
                left -= 1
                return left >= 0 ? .take : .stop
              }
            })
        }
        await Task.yield()
        gate.signal()
        #expect(try await update.value.count == 5)
        #expect(try await lease.value.map(\.id) == ["7", "17", "27", "37", "47", "0"])
        #expect(try await second.counts(.tag("new")) == [.transferring: 5])
        #expect(try await second.counts(.tag("old")) == [.waiting: 44, .transferring: 1])
        for store in [first, second] { try await store.close() }
      }
    }

    /// Changes that wait together share a transaction; the refused one is undone and the others are not.
    @Test func aRefusedUpdateLeavesTheOtherChangesOfItsCommit() async throws {
      struct Refusal: Error {}
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let store = try await ledger.open()
        try await filled(store, 20)
        let gate = DispatchSemaphore(value: 0)
        let isHeld = Watched(false)
        // Holds the writer, so that the changes after it are collected.
        let holder = Task {
          try await store.update("0", at: time(1)) { _ in
            isHeld.update { $0 = true }
            gate.wait()
          }
        }
        await isHeld.wait { $0 }
        let calls = Mutex(0)
        async let added = store.add([try addition("more", 100)], at: time(1))
        async let refused: Bool = {
          do {
            _ = try await store.update(.all, at: time(1)) { record in
              record.request.tags = ["new"]
              let call = calls.withLock { calls in
                calls += 1
                return calls
              }
              if call == 15 { throw Refusal() }
            }
            return false
          } catch is Refusal { return true }
        }()
        async let paused = store.transition(.ids(["3"]), .pause, at: time(1))
        for _ in 0..<100 { await Task.yield() }
        gate.signal()
        _ = try await holder.value
        #expect(try await added.first?.isNew == true)
        #expect(try await refused)
        #expect(try await paused.count == 1)
        #expect(try await store.counts(.all) == [.waiting: 20, .paused: 1])
        #expect(try await store.counts(.tag("new")) == [:])
        #expect(try await store.counts(.tag("old")) == [.waiting: 19, .paused: 1])
        #expect(try await store.records(DownloadQuery()).allSatisfy { !$0.request.tags.contains("new") })
        try await store.close()
      }
    }

    /// Each bulk operation on part of the downloads leaves the lanes right, whether it keeps their lists or forgets
    /// them.
    @Test("The queue is right after bulk operations", arguments: [30, 3_000])
    func theQueueIsRightAfterBulkOperations(count: Int) async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        try await store.rank(
          by: Ranking(name: "priority") { Rank().descending($0.priority).ascending($0.arrival) })
        try await filled(store, count)
        // Fills the lists of lanes.
        let nothing = LeaseRequest(now: start, until: time(60)) { _ in .stop }
        for scope in [LeaseScope.all, .own, .tag("new")] {
          var request = nothing
          request.scope = scope
          _ = try await store.lease(request)
        }
        var model = try await store.records(DownloadQuery())
        #expect(
          try await store.update(.matching(.intent(.silent)), at: time(1)) { record in
            record.request.priority = .high
            record.request.tags = ["new"]
          }.count == count / 3)
        for index in model.indices where model[index].request.intent == .silent {
          model[index].request.priority = .high
          model[index].request.tags = ["new"]
        }
        #expect(try await store.remove(.matching(.host("host3.example"))).count == count / 10)
        #expect(
          try await store.transition(.matching(.host("host4.example")), .pause, at: time(2)).count == count / 10)
        model.removeAll { ["host3.example", "host4.example"].contains($0.request.host) }
        let expected = model.sorted {
          ($1.request.priority, $0.arrival) < ($0.request.priority, $1.arrival)
        }.map(\.id)
        let isNew = Set(model.filter { $0.request.tags == ["new"] }.map(\.id))
        let selected = Mutex(0)
        var request = LeaseRequest(now: time(3), until: time(60), scope: .tag("new")) { _ in
          selected.withLock { $0 += 1 }
          return .take
        }
        #expect(try await store.lease(request).map(\.id) == expected.filter(isNew.contains))
        request.scope = .own
        #expect(try await store.lease(request).map(\.id) == expected.filter { !isNew.contains($0) })
        #expect(selected.withLock { $0 } == expected.count, "only waiting downloads are selected")
        try await store.close()
      }
    }

    @Test func intentsAreComparedByCanonicalEquivalence() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        var request = try DownloadRequest("https://example.org/a", id: "a")
        request.intent = Intent("caf\u{e9}")
        _ = try await store.add([LedgerAddition(request: request, arrival: 1)], at: start)
        #expect(try await store.counts(.intent(Intent("cafe\u{301}"))) == [.waiting: 1])
        try await store.close()
      }
    }

    /// Which index SQLite uses is a property of the statements, not of the number of downloads.
    @Test func filtersAreReadThroughIndexes() async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: .process, lockTimeout: .seconds(5)).open()
        func plan(_ rows: RowFilter, _ statement: String) async throws -> String {
          try await pool.read { db in
            let sql = "EXPLAIN QUERY PLAN " + (rows.prefix + statement).replacing("?", with: "'x'")
            return try Row.fetchAll(db, sql: sql).map { $0["detail"] as String }.joined(separator: "; ")
          }
        }
        let filters: [(DownloadFilter, String)] = [
          (.host("x"), "SEARCH kind USING COVERING INDEX kind_content (host=?"),
          (.intent(.silent), "SCAN kind"),
        ]
        for (filter, kinds) in filters {
          var filter = filter
          filter.location = "y"
          let rows = RowFilter(filter)
          for place in rows.places(of: .waiting) {
            for statement in ["SELECT generation FROM", "UPDATE"] {
              let isUpdate = statement == "UPDATE"
              let plan = try await plan(
                rows, "\(statement) \(place.from) \(isUpdate ? "SET phase = 'paused' " : "")WHERE \(place.where)")
              #expect(plan.contains(kinds), "\(plan)")
              if place.from.hasSuffix("download_ready") {
                #expect(plan.contains("download_ready (opening=? AND kind=?)"), "only these lanes are read: \(plan)")
                #expect(!plan.contains("SCAN download"), "\(plan)")
              } else {
                // Downloads that wait for a time, or for other downloads.
                let index = try #require(place.from.split(separator: " ").last)
                #expect(["download_delayed", "download_dependent"].contains(index))
                #expect(plan.contains(index), "\(plan)")
              }
            }
          }
        }
        for phases in [nil, [.waiting, .failed]] as [Set<DownloadState.Phase>?] {
          let rows = RowFilter(DownloadFilter(phases: phases, tag: "x", host: "y", intent: .silent))
          let plan = try await plan(rows, rows.select("generation"))
          #expect(plan.contains("SEARCH tag USING PRIMARY KEY (tag=?"), "\(plan)")
          #expect(plan.contains("SEARCH download USING INTEGER PRIMARY KEY"), "\(plan)")
        }
        try pool.close()
      }
    }
  }
#endif
