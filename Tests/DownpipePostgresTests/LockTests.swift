#if Postgres
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import ChildPipe
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Downloads that other transactions have locked.
  @Suite(.endsHangs)
  struct LockTests {
    /// The ways in which a lease searches the queue.
    enum Search: CaseIterable {
      /// It takes all that it reads.
      case queue
      /// The first download is skipped, so that it reads the keys of the others.
      case skippingFirst
      /// The last download is skipped, after the locked ones were passed over.
      case skippingLast
      /// It reads the lanes in an order of their own.
      case ordered
      /// The downloads have just become due.
      case due

      /// The downloads that can be leased, in their order.
      static let ids: [DownloadID] = ["a", "b", "c"]

      func fill(_ store: PostgresLedgerStore) async throws {
        let ids = self == .skippingFirst ? ["skipped"] + Self.ids : Self.ids
        try await store.fill(self == .skippingLast ? ids + ["skipped"] : ids)
        guard self == .skippingFirst || self == .skippingLast else { return }
        _ = try await store.update("skipped", at: Date()) { $0.request.intent = Intent("skipped") }
      }

      /// Makes the downloads wait for a time that has passed.
      func delay(_ connection: PostgresConnection) throws {
        if self == .due { _ = try connection.run("UPDATE download SET not_before = 1000 WHERE phase = 'waiting'") }
      }

      var request: LeaseRequest {
        var request = LeaseRequest(now: Date(), until: Date() + 3_000) {
          $0.intent == Intent("skipped") ? .skip : .take
        }
        if self == .ordered { request.order = CandidateOrder(group: \.host, precedence: { _ in 0 }) }
        return request
      }
    }

    private static let lock = "SELECT count(*) FROM (SELECT FROM download WHERE id <> 'skipped' FOR UPDATE) AS locked"

    /// Starts a lease while a transaction has locked the downloads, and waits until the lease waits for it or has ended.
    private func lease(
      _ store: PostgresLedgerStore, _ request: LeaseRequest, behind backend: Int64, _ observer: PostgresConnection
    ) async throws -> Task<[DownloadID], any Error> {
      let isOver = Watched(false)
      let lease = Task {
        defer { isOver.update { $0 = true } }
        return try await store.lease(request).map(\.id)
      }
      while try !isOver.value && !observer.seesWaiter(for: backend) { await Task.yield() }
      return lease
    }

    @Test(
      "A lease finds downloads that were locked when their transaction ends without taking them",
      arguments: Search.allCases)
    func rolledBack(_ search: Search) async throws {
      let ledger = try TestLedger()
      let (store, holder, observer) = (try await ledger.open(), try ledger.connect(), try ledger.connect())
      try await search.fill(store)
      try search.delay(observer)
      let backend = try holder.backend
      var leased: [DownloadID] = []
      // A lease waits for 200 ms; on a machine that is too slow for the end of the transaction it waits in vain.
      for _ in 0..<20 where leased.isEmpty {
        _ = try holder.run("BEGIN")
        #expect(try holder.number(Self.lock) == 3)
        let lease = try await lease(store, search.request, behind: backend, observer)
        _ = try holder.run("ROLLBACK")
        leased = try await lease.value
      }
      #expect(leased == Search.ids)
      #expect(try await store.leaseAll().map(\.id).filter { $0 != "skipped" }.isEmpty)
      try await store.close()
    }

    @Test("A lease returns without downloads that stay locked, and with the others", arguments: Search.allCases)
    func kept(_ search: Search) async throws {
      let ledger = try TestLedger()
      let (store, holder) = (try await ledger.open(), try ledger.connect())
      try await search.fill(store)
      try search.delay(holder)
      _ = try holder.run("BEGIN")
      #expect(try holder.run("SELECT FROM download WHERE id = 'b' FOR UPDATE").count == 1)
      #expect(try await store.lease(search.request).map(\.id) == ["a", "c"])
      // All that are left are locked.
      #expect(try await store.lease(search.request).isEmpty)
      _ = try holder.run("ROLLBACK")
      #expect(try await store.lease(search.request).map(\.id) == ["b"])
      try await store.close()
    }

    @Test("A lease does not return downloads that the other transaction has taken")
    func taken() async throws {
      let ledger = try TestLedger()
      let (store, holder, observer) = (try await ledger.open(), try ledger.connect(), try ledger.connect())
      try await store.fill(Search.ids)
      _ = try holder.run("BEGIN")
      #expect(try holder.number(Self.lock) == 3)
      let lease = try await lease(store, Search.queue.request, behind: holder.backend, observer)
      _ = try holder.run("UPDATE download SET phase = 'transferring', owner = 0")
      _ = try holder.run("COMMIT")
      #expect(try await lease.value.isEmpty)
      try await store.close()
    }

    @Test("The reading of a list ends with its task, also while the server works")
    func cancelling() async throws {
      let ledger = try TestLedger()
      let (store, holder, observer) = (try await ledger.open(), try ledger.connect(), try ledger.connect())
      try await store.fill(Search.ids)
      _ = try holder.run("BEGIN")
      _ = try holder.run("LOCK TABLE download IN ACCESS EXCLUSIVE MODE")
      let reading = Task { try await store.records(DownloadQuery()) }
      let backend = try holder.backend
      while try !observer.seesWaiter(for: backend) { await Task.yield() }
      reading.cancel()
      await #expect(throws: CancellationError.self) { try await reading.value }
      let late = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await store.records(DownloadQuery())
      }
      await #expect(throws: CancellationError.self) { try await late.value }
      _ = try holder.run("ROLLBACK")
      #expect(try await store.records(DownloadQuery()).map(\.id) == Search.ids)
      try await store.close()
    }

    @Test("Two stores that add downloads of new hosts in opposite orders do not wait for each other")
    func hosts() async throws {
      let (ledger, _) = try TestLedger.inNewDatabase()
      let (first, second) = (try await ledger.open(), try await ledger.open())
      let hosts = (0..<200).map { "host\($0).example" }
      func additions(_ hosts: [String], _ prefix: String) throws -> [LedgerAddition] {
        try hosts.enumerated().map { number, host in
          try LedgerAddition(DownloadID("\(prefix)\(number)"), order: Int64(number), host: host)
        }
      }
      for round in 0..<5 {
        let names = hosts.map { "\(round).\($0)" }
        async let one = first.add(additions(names, "a\(round)-"), at: Date())
        async let two = second.add(additions(names.reversed(), "b\(round)-"), at: Date())
        #expect(try await one.count == 200)
        #expect(try await two.count == 200)
      }
      let deadlocks = try ledger.connect().number(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
      #expect(deadlocks == 0)
      for store in [first, second] { try await store.close() }
    }

    @Test("A store that is closed gives back downloads that another transaction has locked")
    func closing() async throws {
      let ledger = try TestLedger()
      let (store, other) = (try await ledger.open(), try await ledger.open())
      let (holder, observer) = (try ledger.connect(), try ledger.connect())
      try await store.fill(Search.ids)
      #expect(try await store.leaseAll().map(\.id) == Search.ids)
      _ = try holder.run("BEGIN")
      #expect(try holder.number(Self.lock) == 3)
      let isOver = Watched(false)
      let closing = Task {
        defer { isOver.update { $0 = true } }
        try await store.close()
      }
      let backend = try holder.backend
      while try !isOver.value && !observer.seesWaiter(for: backend) { await Task.yield() }
      _ = try holder.run("ROLLBACK")
      try await closing.value
      #expect(try await other.counts(.all) == [.waiting: 3])
      #expect(try await other.leaseAll().map(\.id) == Search.ids)
      try await other.close()
    }

    @Test("Downloads that a killed process has locked can be leased")
    func killed() async throws {
      let ledger = try TestLedger()
      let (store, observer) = (try await ledger.open(), try ledger.connect())
      try await store.fill(Search.ids)
      let child = Process()
      let (input, output) = (try ChildPipe(), try ChildPipe())
      child.executableURL = URL(filePath: "/usr/bin/env")
      child.arguments = ["psql", "-X", "-q", "-A", "-t", ledger.address]
      try child.run(input: input, output: output)
      defer { withExtendedLifetime((input, output)) {} }
      let statements =
        "SET search_path = \(Schema.quoted(ledger.schema));\nBEGIN;\n\(Self.lock);\nSELECT pg_backend_pid();\n"
      try input.fileHandleForWriting.write(contentsOf: Data(statements.utf8))
      var answer = ""
      while answer.split(separator: "\n").count < 2 || !answer.hasSuffix("\n") {
        let data = output.fileHandleForReading.availableData
        try #require(!data.isEmpty, "psql has ended")
        answer += String(decoding: data, as: UTF8.self)
      }
      let numbers = answer.split(separator: "\n").compactMap { Int64($0) }
      try #require(numbers.count == 2 && numbers[0] == 3)
      #expect(try await store.leaseAll().isEmpty)
      kill(child.processIdentifier, SIGKILL)
      child.waitUntilExit()
      while try observer.number("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", .integer(numbers[1])) > 0 {
        await Task.yield()
      }
      #expect(try await store.leaseAll().map(\.id) == Search.ids)
      try await store.close()
    }
  }
#endif
