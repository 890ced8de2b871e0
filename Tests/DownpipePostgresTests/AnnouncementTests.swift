#if Postgres
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// What stores tell each other through the server.
  @Suite(.endsHangs)
  struct AnnouncementTests {
    /// A connection that hears what the stores of a ledger announce.
    private struct Listener {
      /// A channel for marks, which no store hears. Notifications of all channels arrive in the order of their commits.
      private let marks = "marks \(DownloadID())"
      let connection: PostgresConnection
      let channel: String

      init(_ ledger: TestLedger) throws {
        connection = try ledger.connect()
        let name = try #require(try connection.all("SELECT value FROM setting WHERE name = 'ledger'").first?[0])
        channel = "downpipe " + name
        for channel in [channel, marks] {
          _ = try connection.run("LISTEN " + Schema.quoted(channel), prepares: false)
        }
      }

      /// The number of announcements since the last call.
      func count() throws -> Int {
        let mark = "\(DownloadID())"
        _ = try connection.run("SELECT pg_notify($1, $2)", [.text(marks), .text(mark)])
        var count = 0
        while true {
          let heard = try connection.notifications(within: .hangLimit)
          try #require(!heard.isEmpty)
          count += heard.count { $0.channel == channel }
          if heard.contains(where: { $0.text == mark }) { return count }
        }
      }

      /// Waits for an announcement.
      func hears() throws -> Bool {
        try connection.notifications(within: .hangLimit).contains { $0.channel == channel }
      }

      /// Announces what no store has done.
      func announce() throws {
        _ = try connection.run("SELECT pg_notify($1, '0')", [.text(channel)])
      }
    }

    @Test("Each store announces a thousand changes at most ten times in a second", arguments: [1, 6])
    func thousand(count: Int) async throws {
      let ledger = try TestLedger()
      var stores: [PostgresLedgerStore] = []
      for _ in 0..<count { stores.append(try await ledger.open()) }
      let ids = (0..<2 * count).map { DownloadID("\($0)") }
      try await stores[0].fill(ids)
      let listener = try Listener(ledger)
      let begin = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, id) in ids.enumerated() {
          let store = stores[number / 2]
          group.addTask {
            for _ in 0..<500 { _ = try await store.increment([id]) }
          }
        }
        try await group.waitForAll()
      }
      let heard = try listener.count()
      let time = begin.duration(to: .now)
      // For each store one more, because the first one comes at once, and one for the rounding.
      let intervals = Int(time / Duration.milliseconds(100))
      let most = count * (intervals + 2)
      #expect(heard >= count && heard <= most, "\(heard) notifications of \(count) stores in \(time)")
      for store in stores { try await store.close() }
    }

    @Test("The last of several changes is heard", arguments: [1, 2, 3, 50])
    func last(_ count: Int) async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      try await store.fill(["a"])
      let listener = try Listener(ledger)
      for round in 0..<10 {
        for _ in 1..<count { _ = try await store.increment(["a"]) }
        // What was announced before the last change does not count.
        _ = try listener.count()
        while try await other.hasChangesByOtherProcesses() == true {}
        _ = try await store.increment(["a"])
        #expect(try listener.hears(), "round \(round)")
        #expect(try await other.hears(), "round \(round)")
      }
      #expect(try await other.record("a")?.request.metadata["count"] == "\(count * 10)")
      for store in [store, other] { try await store.close() }
    }

    @Test("The last change before a store is closed is announced")
    func closing() async throws {
      let ledger = try TestLedger()
      let first = try await ledger.open()
      try await first.fill(["a"])
      let listener = try Listener(ledger)
      for round in 0..<30 {
        let store = try await ledger.open(connections: 1)
        for _ in 0..<2 { _ = try await store.increment(["a"]) }
        _ = try listener.count()
        _ = try await store.increment(["a"])
        try await store.close()
        #expect(try listener.count() > 0, "round \(round)")
      }
      try await first.close()
    }

    @Test("A store does not hear itself")
    func own() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      try await store.fill(["a"])
      #expect(try await other.hears())
      var count = 0
      for _ in 0..<20 {
        _ = try await store.increment(["a"])
        #expect(try await other.hears())
        if try await store.hasChangesByOtherProcesses() == true { count += 1 }
      }
      // When it begins to listen, a change is assumed.
      #expect(count < 10)
      for store in [store, other] { try await store.close() }
    }

    @Test("A change is heard that is made while the listening connection is opened again")
    func reconnecting() async throws {
      let (ledger, database) = try TestLedger.inNewDatabase()
      let store = try await ledger.open(connections: 1)
      let (listener, outside) = (try Listener(ledger), try TestLedger().connect())
      // All connections but that of this test end, and cannot be opened again.
      _ = try outside.run("ALTER DATABASE \(database) ALLOW_CONNECTIONS false", prepares: false)
      _ = try outside.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2",
        [.text(database), .integer(listener.connection.backend)])
      // Each failure is taken for a change. After each the next attempt is later.
      for _ in 0..<4 { #expect(try await store.hears()) }
      try listener.announce()
      _ = try outside.run("ALTER DATABASE \(database) ALLOW_CONNECTIONS true", prepares: false)
      #expect(try await store.hears())

      // From here on, changes are heard as before.
      let other = try await ledger.open(connections: 1)
      try await other.fill(["a"])
      for _ in 0..<5 {
        while try await store.hasChangesByOtherProcesses() == true {}
        #expect(try await other.increment(["a"]).count == 1)
        #expect(try await store.hears())
      }
      for store in [store, other] { try await store.close() }
    }
  }
#endif
