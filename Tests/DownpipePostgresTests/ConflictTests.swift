#if Postgres
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Transactions that wait for each other.
  @Suite(.endsHangs)
  struct ConflictTests {
    /// The generations ascend as the ids descend.
    private static let ids = (0..<6).map { DownloadID("\(9 - $0)") }
    private static let rounds = 15

    private static func address(deadlockTimeout time: String) throws -> String {
      let address: String = try PostgresCluster.shared.get().address
      return "\(address)&options=-c%20deadlock_timeout%3D\(time)"
    }

    @Test("Stores that change the same downloads in opposite orders lose no change, and no call fails")
    func deadlocks() async throws {
      // So that the server looks for circles early.
      let ledger = try TestLedger(Self.address(deadlockTimeout: "20ms"))
      let stores = [try await ledger.open(connections: 4), try await ledger.open(connections: 4)]
      try await stores[0].fill(Self.ids)
      let ids = Self.ids
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          for task in 0..<2 {
            // In the order of the generations.
            group.addTask {
              for _ in 0..<Self.rounds {
                let result = try await store.increment(ids)
                #expect(result.count == ids.count)
              }
            }
            // In the order of the ids.
            group.addTask {
              for round in 0..<Self.rounds {
                let additions = try ids.shuffled().map { id in
                  var addition = try LedgerAddition(id, order: 0)
                  addition.request.priority = Priority(Int16(100 * (2 * number + task) + round))
                  return addition
                }
                let outcomes = try await store.add(additions, at: Date())
                #expect(outcomes.count == ids.count)
              }
            }
          }
          // They change the phases, and so the counts.
          group.addTask {
            for round in 0..<Self.rounds {
              _ = try await store.transition(.ids(ids), [.pause, .resume, .cancel, .restart][round % 4], at: Date())
            }
          }
          group.addTask {
            for _ in 0..<Self.rounds {
              var saves = try await store.leaseAll().map { LedgerSave($0, .state) }
              for index in saves.indices { saves[index].record.phase = .waiting }
              let saved = try await store.exchange(saves, leasing: nil, at: Date()).saved
              #expect(saved.allSatisfy { $0 })
            }
          }
        }
        try await group.waitForAll()
      }
      let records = try await stores[0].records(of: ids)
      #expect(records.count == ids.count)
      for record in records {
        #expect(record.request.metadata["count"] == "\(4 * Self.rounds)", "\(record.id)")
      }
      let connection = try ledger.connect()
      try await checkCounts(stores[1], connection)
      for store in stores { try await store.close() }
    }

    /// Calls that change several downloads, and whether they are repeated after a deadlock.
    enum Call: CaseIterable {
      case update, add, transition, save, leave
      /// What its selector or its choice has been asked counts once: these fail, and nothing is changed.
      case exchange, remove

      var isRepeated: Bool { self != .exchange && self != .remove }
      /// Whether the store holds the downloads.
      var needsLease: Bool { self == .save || self == .leave || self == .exchange }

      func perform(_ store: PostgresLedgerStore, _ ids: [DownloadID], _ held: [DownloadRecord]) async throws {
        let saves = held.map { LedgerSave($0, .checkpoint) }
        switch self {
        case .update: #expect(try await store.increment(ids).count == ids.count)
        case .add:
          let additions = try ids.map { id in
            var addition = try LedgerAddition(id, order: 0)
            addition.request.priority = .high
            return addition
          }
          #expect(try await store.add(additions, at: Date()).count == ids.count)
        case .transition: #expect(try await store.transition(.ids(ids), .pause, at: Date()).count == ids.count)
        case .save: #expect(try await store.exchange(saves, leasing: nil, at: Date()).saved.allSatisfy { $0 })
        case .leave: try await store.close()
        case .exchange:
          let request = LeaseRequest(now: Date(), until: Date() + 3_000) { _ in .take }
          #expect(try await store.exchange(saves, leasing: request, at: Date()).saved.allSatisfy { $0 })
        case .remove: #expect(try await store.remove(.ids(ids)).count == ids.count)
        }
      }
    }

    @Test("A call that a deadlock has ended is repeated, or fails and changes nothing", arguments: Call.allCases)
    func deadlock(_ call: Call) async throws {
      // The server ends the transaction that has waited for so long, unless the other one has begun to wait later.
      let ledger = try TestLedger(Self.address(deadlockTimeout: "1s"))
      let (holder, observer) = (try ledger.connect(), try ledger.connect())
      _ = try holder.run("SET deadlock_timeout = '20s'")
      let backend = try holder.backend
      var hasHappened = false
      // On a machine that is too slow, the other transaction is ended.
      for _ in 0..<5 where !hasHappened {
        let (store, other) = (try await ledger.open(), try await ledger.open())
        _ = try await other.remove(.all)
        try await store.fill(Self.ids)
        let held = call.needsLease ? try await store.leaseAll() : []
        let before = try observer.all("SELECT download::text FROM download ORDER BY 1")
        let ends = [Self.ids[0], Self.ids[5]]
        // The call has locked one of both, unless it has locked none, and waits for the other one.
        _ = try holder.run("BEGIN")
        let lock = "SELECT FROM download WHERE id = $1 FOR UPDATE"
        _ = try holder.run(lock, [.text(ends[1].rawValue)])
        let isOver = Watched(false)
        let task = Task {
          defer { isOver.update { $0 = true } }
          try await call.perform(store, Self.ids, held)
        }
        while try !isOver.value && !observer.seesWaiter(for: backend) { await Task.yield() }
        // If this one is ended, the test begins again.
        if (try? holder.run(lock, [.text(ends[0].rawValue)]).count) != nil { hasHappened = true }
        _ = try holder.run("ROLLBACK")
        switch await task.result {
        case .success: #expect(call.isRepeated || !hasHappened)
        case .failure(let error):
          #expect(!call.isRepeated && (error as? DownloadError)?.code == .ledger, "\(error)")
          let after = try observer.all("SELECT download::text FROM download ORDER BY 1")
          #expect(after == before)
          try await call.perform(store, Self.ids, held)
        }
        try await checkCounts(other, observer)
        if call != .leave { try await store.close() }
        try await other.close()
      }
      #expect(hasHappened)
    }

    private func checkCounts(_ store: PostgresLedgerStore, _ connection: PostgresConnection) async throws {
      let tallies = try connection.all(
        "SELECT phase, sum(count) FROM tally GROUP BY phase HAVING sum(count) <> 0 ORDER BY 1", columns: 2)
      let recount = try connection.all(
        "SELECT phase, count(*) FROM download WHERE owner IS NULL GROUP BY phase ORDER BY 1", columns: 2)
      #expect(tallies == recount)
      let records = try await store.records(DownloadQuery())
      #expect(try await store.counts(.all) == Dictionary(grouping: records, by: \.phase).mapValues(\.count))
    }

    @Test("The counts are right after many changes at the same time")
    func counts() async throws {
      let ledger = try TestLedger()
      let stores = [try await ledger.open(connections: 3), try await ledger.open(connections: 3)]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          for task in 0..<3 {
            group.addTask {
              for round in 0..<12 {
                let ids = (0..<8).map { DownloadID("\(number) \(task) \(round) \($0)") }
                try await store.fill(ids)
                var leased = try await store.lease(
                  LeaseRequest(now: Date(), until: Date() + 3_000, scope: .ids(Set(ids.prefix(5)))) { _ in .take })
                for (index, phase) in [DownloadState.Phase.finished, .failed, .paused, .waiting].enumerated() {
                  guard index < leased.count else { break }
                  leased[index].phase = phase
                }
                let saves = leased.map { LedgerSave($0, [.state, .steps]) }
                let saved = try await store.exchange(saves, leasing: nil, at: Date()).saved
                #expect(saved.allSatisfy { $0 })
                _ = try await store.transition(.ids(ids), round % 2 == 0 ? .cancel : .restart, at: Date())
                if round % 3 == 0 { _ = try await store.remove(.ids(ids)) }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      try await checkCounts(stores[0], try ledger.connect())
      for store in stores { try await store.close() }
    }
  }
#endif
