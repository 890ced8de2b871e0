#if Postgres
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Shares of rates by the server's clock.
  @Suite(.endsHangs)
  struct RateTests {
    private static let rate = ByteRate.bytesPerSecond(100)

    private func want(_ wanted: Int64 = 100, held: Int64 = 0, _ key: String = "rate") -> RateWant {
      RateWant(key: key, rate: Self.rate, wanted: wanted, held: held)
    }

    /// The share that a store gets.
    private func lease(
      _ store: PostgresLedgerStore, _ want: RateWant, for duration: Duration = .seconds(1_000), at now: Date = Date()
    ) async throws -> Int64 {
      try await store.leaseRates([want], for: duration, at: now)[0].bytesPerSecond
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

    @Test("The clocks of the machines do not matter, nor do those of other schemas")
    func clocks() async throws {
      let ledger = try TestLedger()
      let early = try await ledger.open { Date() - 7_200 }
      let late = try await ledger.open { Date() + 7_200 }
      #expect(try await lease(early, want(80), at: Date() - 7_200) == 80)
      #expect(try await lease(late, want(), at: Date() + 7_200) == 20)
      let other = try await TestLedger(ledger.address).open()
      #expect(try await lease(other, want()) == 100)
      for store in [early, late, other] { try await store.close() }
    }

    @Test("Many stores that lease the same rates in any order never have more than the rates together")
    func manyStores() async throws {
      let ledger = try TestLedger()
      var stores: [PostgresLedgerStore] = []
      for _ in 0..<8 { stores.append(try await ledger.open(connections: 1)) }
      // The shares in effect by key and store.
      let effective = Watched<[String: [Int: Int64]]>([:])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: UInt64(number))
            for _ in 0..<25 {
              let keys = (0..<40).map { "k\($0)" }.shuffled(using: &generator).prefix(30)
              let wants = keys.map { key in
                want(
                  Int64.random(in: 0...120, using: &generator), held: effective.value[key]?[number] ?? 0, key)
              }
              let shares = try await store.leaseRates(wants, for: .seconds(1_000), at: Date())
              for (want, share) in zip(wants, shares) {
                let sum = effective.update { all in
                  all[want.key, default: [:]][number] = share.bytesPerSecond
                  return all[want.key, default: [:]].values.reduce(0, +)
                }
                #expect(sum <= 100)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(effective.value.values.contains { $0.values.reduce(0, +) == 100 })
      for store in stores { try await store.close() }
      let connection = try ledger.connect()
      #expect(try connection.number("SELECT count(*) FROM rate_share") == 0)
    }

    @Test("A worker that stops in the middle of a transaction holds the others up for seconds only")
    func stoppedInATransaction() async throws {
      let ledger = try TestLedger()
      let (stopped, store) = (try await ledger.open(), try await ledger.open())
      let (connection, memory) = (
        try ledger.connect(), StoreMemory(owner: (stopped.owner, 1_000_000), schema: ledger.schema)
      )
      // The server ends its session.
      #expect(throws: PostgresFault.self) {
        try LedgerTables.change(connection, memory) { tables in
          _ = try tables.leaseRates([want(70)], for: .seconds(1_000))
          while connection.isAlive { connection.pause(for: .milliseconds(50)) }
          _ = try tables.run("SELECT 1")
        }
      }
      // What it has leased was not committed.
      #expect(try await lease(store, want()) == 100)
      for store in [stopped, store] { try await store.close() }
    }

    @Test("Others wait for a lease in progress, and see it")
    func order() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let connection = try ledger.connect()
      let backend = try connection.backend
      _ = try connection.run("BEGIN")
      _ = try connection.run("INSERT INTO rate SELECT \(Schema.limitHash("$1")), $1", [.text("rate")])
      // Again if the server takes longer than a lease waits for others.
      async let share = eventually { try await lease(store, want()) }
      let watcher = try ledger.connect()
      while try !watcher.seesWaiter(for: backend) { await Task.yield() }
      // Another key does not wait.
      #expect(try await lease(other, want(100, "another")) == 100)
      _ = try connection.run(
        """
        INSERT INTO rate_share SELECT \(Schema.limitHash("$1")), 1000000, 100, 100, 60,
          extract(epoch FROM clock_timestamp()) + 1000, 0, 0
        """, [.text("rate")])
      _ = try connection.run("COMMIT")
      #expect(try await share == 40)
      for store in [store, other] { try await store.close() }
    }

    @Test("A restart and a crash of the server keep the shares", arguments: [false, true])
    func restart(crashes: Bool) async throws {
      let cluster = try PostgresCluster()
      let ledger = try TestLedger(cluster.address)
      let (store, other) = (try await ledger.open(), try await ledger.open())
      #expect(try await lease(store, want(70)) == 70)
      if crashes {
        let file = cluster.folder + "/data/postmaster.pid"
        let first = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").first
        kill(try #require(first.flatMap { Int32($0) }), SIGQUIT)
        while FileManager.default.fileExists(atPath: file) { await Task.yield() }
        try cluster.control("start")
      } else {
        try cluster.control("restart")
      }
      #expect(try await eventually { try await lease(other, want()) } == 30)
      for store in [store, other] { try await store.close() }
      withExtendedLifetime(cluster) {}
    }

    @Test("Expired shares and unused rates are deleted by the look for lost downloads, and others are kept")
    func deletion() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      #expect(try await lease(store, want(10, held: 0, "old")) == 10)
      #expect(try await lease(store, want(10, held: 0, "new")) == 10)
      let connection = try ledger.connect()
      _ = try connection.run(
        "UPDATE rate_share SET ends = ends - 2000 WHERE key = \(Schema.limitHash("$1"))", [.text("old")])
      _ = try await other.reclaim(at: Date())
      #expect(try connection.all("SELECT name FROM rate JOIN rate_share USING (key)") == [["new"]])
      #expect(try connection.all("SELECT name FROM rate") == [["new"]])
      // A rate that was deleted is made again.
      #expect(try await lease(other, want(100, held: 0, "old")) == 100)
      for store in [store, other] { try await store.close() }
    }

    @Test("Tables of version 1 are migrated; programs of that version, and users with rights, go on")
    func migration() async throws {
      let ledger = try TestLedger()
      let bare = try PostgresConnection.open(.init(address: ledger.address), interruptedBy: Interruption())
      let schema = Schema.quoted(ledger.schema)
      _ = try bare.run("CREATE SCHEMA \(schema)", prepares: false)
      let connection = try ledger.connect()
      for statement in Schema.migrations[0] { _ = try connection.run(statement, prepares: false) }
      _ = try connection.run("INSERT INTO setting VALUES ('version', '1'), ('oldest version', '1')")
      let user = try ledger.addUser()
      let store = try await ledger.open()
      #expect(try connection.all("SELECT value FROM setting WHERE name = 'version'") == [["\(Schema.version)"]])
      #expect(try connection.all("SELECT value FROM setting WHERE name = 'oldest version'") == [["1"]])
      #expect(try await lease(store, want(60)) == 60)
      let other = try await PostgresLedger(user, schema: ledger.schema).open()
      #expect(try await other.leaseRates([want()], for: .seconds(5), at: Date()).map(\.bytesPerSecond) == [40])
      #expect(try await other.reclaim(at: Date()) == 0)
      for store in [store, other] as [any LedgerStore] { try await store.close() }
    }
  }
#endif
