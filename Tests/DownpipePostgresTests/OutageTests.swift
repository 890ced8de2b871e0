#if Postgres
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// A server that ends while stores are open.
  @Suite(.endsHangs)
  struct OutageTests {
    /// How a server ends.
    enum End: CaseIterable {
      /// All its processes end at once, and nothing is written.
      case immediate
      /// One process of the server is killed: the others end, and the server recovers by itself.
      case crashedProcess
    }

    private func end(_ cluster: PostgresCluster, _ end: End, _ ledger: TestLedger) async throws {
      switch end {
      case .immediate:
        let file = cluster.folder + "/data/postmaster.pid"
        let first = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").first
        kill(try #require(first.flatMap { Int32($0) }), SIGQUIT)
        while FileManager.default.fileExists(atPath: file) { await Task.yield() }
      case .crashedProcess:
        let connection = try ledger.connect()
        kill(Int32(try connection.backend), SIGKILL)
        while connection.isAlive { await Task.yield() }
      }
    }

    /// Performs a call until it succeeds. Each failure has to be one of the ledger.
    private func eventually<Value: Sendable>(_ call: () async throws -> Value) async throws -> Value {
      while true {
        do { return try await call() } catch {
          let error = try #require(error as? DownloadError)
          try #require(error.code == .ledger, "\(error)")
          await Task.yield()
        }
      }
    }

    @Test(
      "Calls fail with an error of the ledger or succeed, and no store has to be opened again", arguments: End.allCases)
    func restart(_ how: End) async throws {
      let cluster = try PostgresCluster()
      let ledger = try TestLedger(cluster.address)
      let (store, other) = (try await ledger.open(), try await ledger.open())
      try await store.fill(["held", "a"])
      let held = try #require(
        try await store.lease(
          LeaseRequest(now: Date(), until: Date() + 3_000, scope: .ids(["held"])) { _ in .take }
        ).first)

      // One store adds all the time; the ids whose addition has returned are committed.
      let (added, mustEnd) = (Watched<[DownloadID]>([]), Watched(false))
      let adding = Task {
        var number = 0
        var failures = 0
        while !mustEnd.value {
          number += 1
          let id = DownloadID("n\(number)")
          do {
            _ = try await other.add([try LedgerAddition(id, order: Int64(number))], at: Date())
            added.update { $0.append(id) }
          } catch {
            let error = try #require(error as? DownloadError)
            try #require(error.code == .ledger, "\(error)")
            failures += 1
          }
          await Task.yield()
        }
        return failures
      }
      await added.wait { $0.count >= 100 }
      try await end(cluster, how, ledger)

      // The calls of an outage.
      if how == .immediate {
        let calls: [@Sendable () async throws -> Void] = [
          { _ = try await store.record("a") }, { _ = try await store.counts(.all) }, { _ = try await store.leaseAll() },
          { _ = try await store.save(held, .checkpoint, at: Date()) },
          { try await store.renewLeases(until: Date() + 60) },
          { _ = try await store.reclaim(at: Date()) }, { _ = try await store.transition(.all, .pause, at: Date()) },
          { _ = try await store.exchange([LedgerSave(held, .state)], leasing: nil, at: Date()) },
          { _ = try await store.remove(.all) }, { try await store.rank(by: .arrival) },
        ]
        for call in calls {
          let error = await #expect(throws: DownloadError.self) { try await call() }
          #expect(error?.code == .ledger)
        }
        // Nothing is known, but that is no failure.
        #expect(try await store.hasChangesByOtherProcesses() != nil)
        await #expect(throws: DownloadError.self) {
          try await PostgresLedger(ledger.address, schema: ledger.schema).open()
        }
        try cluster.control("start")
      }

      #expect(try await eventually { try await store.record("a") }?.phase == .waiting)
      let before = added.value.count
      await added.wait { $0.count >= before + 100 }
      mustEnd.update { $0 = true }
      // After a crash the server may be back before an addition fails.
      let failures = try await adding.value
      #expect(how == .crashedProcess || failures > 0)
      let ids = added.value
      #expect(Set(try await store.records(of: ids).map(\.id)) == Set(ids))
      // Additions whose answers were lost may be there, too.
      let counts = try await store.counts(.all)
      #expect(counts[.transferring] == 1)
      let records = try await store.records(DownloadQuery())
      #expect(counts == Dictionary(grouping: records, by: \.phase).mapValues(\.count))

      // The lease is there, and the owner holds it.
      var finished = held
      finished.phase = .finished
      #expect(try await eventually { try await store.save(finished, [.state, .steps], at: Date()) })

      // Changes are noticed again, each one.
      for _ in 0..<5 {
        while try await store.hasChangesByOtherProcesses() == true {}
        #expect(try await other.increment(["a"]).count == 1)
        #expect(try await store.hears())
      }
      for store in [store, other] { try await store.close() }
      withExtendedLifetime(cluster) {}
    }

    @Test("A store that is closed while the server is away says so, and its downloads are free afterwards")
    func closing() async throws {
      let cluster = try PostgresCluster()
      let ledger = try TestLedger(cluster.address)
      let (store, other) = (try await ledger.open(), try await ledger.open())
      try await store.fill(["a", "b"])
      #expect(try await store.leaseAll().count == 2)
      try await end(cluster, .immediate, ledger)
      let error = await #expect(throws: DownloadError.self) { try await store.close() }
      #expect(error?.code == .ledger)
      try cluster.control("start")
      // It is known in this process that its owner has ended, before its leases expire.
      #expect(try await eventually { try await other.reclaim(at: Date()) } == 2)
      #expect(try await other.leaseAll().map(\.id) == ["a", "b"])
      try await other.close()
      withExtendedLifetime(cluster) {}
    }
  }
#endif
