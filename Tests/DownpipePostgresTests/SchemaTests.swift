#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Making the tables, and finding those of other versions.
  @Suite(.endsHangs)
  struct SchemaTests {
    /// The error with which a ledger refuses to open.
    private func refusal(_ address: String, schema: String) async -> DownloadError? {
      await #expect(throws: DownloadError.self) {
        try await PostgresLedger(address, schema: schema).open().close()
      }
    }

    @Test("Eight stores that open a new ledger at the same time make one set of tables")
    func together() async throws {
      for _ in 0..<4 {
        let ledger = try TestLedger()
        let stores = try await withThrowingTaskGroup(of: PostgresLedgerStore.self) { group in
          for _ in 0..<8 { group.addTask { try await ledger.open(connections: 1) } }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(stores.map(\.owner)).count == 8)
        let connection = try ledger.connect()
        #expect(try connection.number("SELECT count(*) FROM setting WHERE name = 'ledger'") == 1)
        #expect(try connection.number("SELECT count(*) FROM opening") == 8)
        #expect(
          try connection.number(
            "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'download'", .text(ledger.schema))
            == 1)
        for (order, store) in stores.enumerated() {
          _ = try await store.add([try LedgerAddition("\(order)", order: Int64(order))], at: Date())
        }
        #expect(try await stores[0].counts(.all) == [.waiting: 8])
        for store in stores { try await store.close() }
        #expect(try connection.number("SELECT count(*) FROM opening") == 0)
      }
    }

    /// The rows of all tables, and the columns.
    private func content(_ ledger: TestLedger) throws -> [[String?]] {
      let connection = try ledger.connect()
      let tables = ["setting", "opening", "kind", "tally", "tag", "dependency", "download"]
      return try tables.flatMap { try connection.all("SELECT \($0)::text FROM \($0) ORDER BY 1") }
        + connection.all(
          """
          SELECT concat_ws(' ', table_name, column_name, data_type) FROM information_schema.columns
          WHERE table_schema = '\(ledger.schema)' ORDER BY 1
          """)
    }

    @Test("Downloads of version 3 keep all, and can be verified")
    func verifiedDigests() async throws {
      let ledger = try TestLedger()
      let old = try await ledger.open()
      _ = try await old.add([try LedgerAddition("a", order: 1), try LedgerAddition("b", order: 2)], at: Date())
      let records = try await old.records(DownloadQuery())
      try await old.close()
      let connection = try ledger.connect()
      _ = try connection.run("ALTER TABLE download DROP COLUMN versions, DROP COLUMN verified", prepares: false)
      _ = try connection.run("UPDATE setting SET value = '3' WHERE name = 'version'", prepares: false)
      let store = try await ledger.open()
      #expect(try await store.records(DownloadQuery()) == records && records.count == 2)
      #expect(try connection.all("SELECT value FROM setting WHERE name = 'version'") == [["\(Schema.version)"]])
      let leased = try await store.lease(LeaseRequest(now: Date(), until: Date() + 60) { _ in .take })
      var record = try #require(leased.first)
      record.steps.verified = [VerifiedDigest(FileDigest(.md5, bytes: Array(0..<16)), from: .server)]
      #expect(try await store.save(record, .steps, at: Date()))
      #expect(try await store.record(record.id)?.steps.verified == record.steps.verified)
      try await store.close()
    }

    @Test("Tables of a newer version are refused, with what to do, and are not changed")
    func newer() async throws {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      try await store.fill(["a", "b"])
      try await store.close()
      let connection = try ledger.connect()
      for name in ["version", "oldest version"] {
        let changed = try connection.run(
          "UPDATE setting SET value = $1 WHERE name = $2", [.text("\(Schema.version + 1)"), .text(name)])
        #expect(changed.changed == 1)
      }
      let before = try content(ledger)
      let error = await refusal(ledger.address, schema: ledger.schema)
      #expect(error?.code == .ledger)
      let message = error?.message ?? ""
      #expect(message.contains("newer version") && message.contains("update this program"), "\(message)")
      #expect(message.contains(ledger.schema))
      #expect(try content(ledger) == before)
    }

    @Test("Tables of a newer version that this one can use are used, and their version is kept")
    func compatible() async throws {
      let ledger = try TestLedger()
      try await ledger.open().close()
      let connection = try ledger.connect()
      _ = try connection.run("UPDATE setting SET value = '\(Schema.version + 1)' WHERE name = 'version'")
      let store = try await ledger.open()
      try await store.fill(["a"])
      #expect(try await store.counts(.all) == [.waiting: 1])
      try await store.close()
      #expect(try connection.all("SELECT value FROM setting WHERE name = 'version'") == [["\(Schema.version + 1)"]])
    }

    @Test("A user that may not make a schema, or use one, is told so")
    func rights() async throws {
      let shared = try PostgresCluster.shared.get()
      let ledger = try TestLedger()
      let store = try await ledger.open()
      let connection = try ledger.connect()
      let user = "u\(UInt32.random(in: 0...UInt32.max))"
      _ = try connection.run("CREATE ROLE \(user) LOGIN", prepares: false)
      let address = "postgresql://\(user)@/downpipe?host=\(shared.folder)"

      // No schema, a schema without rights, and tables without rights.
      let missing = "\(DownloadID())"
      for (schema, word) in [(missing, "downpipe"), (ledger.schema, ledger.schema)] {
        let error = await refusal(address, schema: schema)
        let message = error?.message ?? ""
        #expect(error?.code == .ledger && message.contains("grant the rights") && message.contains(word), "\(message)")
      }
      #expect(try connection.number("SELECT count(*) FROM pg_namespace WHERE nspname = $1", .text(missing)) == 0)
      _ = try connection.run("GRANT USAGE ON SCHEMA \(Schema.quoted(ledger.schema)) TO \(user)", prepares: false)
      let error = await refusal(address, schema: ledger.schema)
      let message = error?.message ?? ""
      #expect(
        error?.code == .ledger && message.contains("grant the rights") && message.contains("setting"), "\(message)")

      // All that a user of existing tables needs.
      for objects in ["TABLES", "SEQUENCES"] {
        _ = try connection.run(
          "GRANT ALL ON ALL \(objects) IN SCHEMA \(Schema.quoted(ledger.schema)) TO \(user)", prepares: false)
      }
      let other = try await PostgresLedger(address, schema: ledger.schema).open()
      _ = try await other.add([try LedgerAddition("a", order: 1)], at: Date())
      #expect(try await store.counts(.all) == [.waiting: 1])
      try await other.close()
      try await store.close()
    }

    @Test(
      "A schema can have any name",
      arguments: [
        "a \"quoted\" name", "it's; DROP SCHEMA x", "Back\\slash", "日本 👩‍👩‍👧", "dotted.name", "public ",
        String(repeating: "x", count: 63),
      ])
    func names(_ name: String) async throws {
      let (ledger, _) = try TestLedger.inNewDatabase()
      let named = try TestLedger(ledger.address, schema: name)
      for _ in 0..<2 {
        let store = try await named.open()
        try await store.fill(["a"])
        #expect(try await store.record("a")?.id == "a")
        try await store.close()
      }
      let schemas = try named.connect().all("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1")
      #expect(Set(schemas.map { $0[0] }) == ["information_schema", "public", name])
    }

    @Test(
      "A name that the server would change is refused, and nothing is made",
      arguments: ["", "$user", "pg_temp", String(repeating: "x", count: 64), String(repeating: "é", count: 32)])
    func refusedNames(_ name: String) async throws {
      let (ledger, _) = try TestLedger.inNewDatabase()
      let error = await refusal(ledger.address, schema: name)
      #expect(error?.code == .ledger)
      let schemas = try ledger.connect().all("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1")
      #expect(Set(schemas.map { $0[0] }) == ["information_schema", "public"])
    }

    @Test("Two names that the server would cut to the same one do not share a ledger")
    func longNames() async throws {
      let start = String(repeating: "x", count: 63)
      let (ledger, _) = try TestLedger.inNewDatabase()
      let store = try await TestLedger(ledger.address, schema: start).open()
      try await store.fill(["a"])
      #expect(await refusal(ledger.address, schema: start + "y")?.code == .ledger)
      try await store.close()
    }
  }
#endif
