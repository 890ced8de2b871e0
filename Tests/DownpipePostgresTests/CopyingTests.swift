#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Many downloads at once, which are copied.
  @Suite(.endsHangs)
  struct CopyingTests {
    private static let count = LedgerTables.leastCopied * 2
    /// What the format of `COPY` or the texts of the database have a meaning for.
    private static let texts = ["\t", "\n", "\r\n", "\\", "\\N", "\\.", "\\x41", "\0", "\u{1}", "'", "👩‍👩‍👧", ""]

    /// Additions whose texts need care; some differ from the others in the columns that they have.
    private func additions() throws -> [LedgerAddition] {
      try (0..<Self.count).map { number in
        let text = Self.texts[number % Self.texts.count]
        var request = try DownloadRequest("https://example.org/\(number)", id: DownloadID("\(number)\(text)"))
        request.metadata = ["a": text, text + "b": "\\.\n\(text)"]
        if number % 7 == 0 { request.destination.name = "\(number)" }
        if number % 11 == 0 { request.tags = ["t\(text)"] }
        if number % 13 == 0 { request.maximumSize = Int64(number) }
        return LedgerAddition(request: request, arrival: Int64(number))
      }
    }

    @Test("They are read back as they were, also those that are added twice, and by several transactions")
    func many() async throws {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      let additions = try additions()
      let outcomes = try await store.add(additions, at: Date())
      #expect(outcomes.allSatisfy { $0.isNew })
      #expect(outcomes.map(\.record.request) == additions.map(\.request))
      let records = try await store.records(of: additions.map(\.request.id))
      let found = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0.request) })
      #expect(found == Dictionary(uniqueKeysWithValues: additions.map { ($0.request.id, $0.request) }))
      #expect(try await store.counts(.all) == [.waiting: Self.count])
      // Half of them are known, and one connection copies twice in one transaction.
      let others = try (0..<12_000).map { try LedgerAddition(DownloadID("other \($0)"), order: Int64($0)) }
      let again = try await store.add(Array(additions.prefix(Self.count / 2)) + others, at: Date())
      #expect(again.filter(\.isNew).count == others.count)
      #expect(try await store.counts(.all) == [.waiting: Self.count + others.count])
      try await store.close()
    }

    @Test("A download that another worker adds at the same time is known, and the others are added")
    func added() async throws {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      _ = try await store.add([LedgerAddition("first", order: 0)], at: Date())
      let other = try ledger.connect()
      _ = try other.run("BEGIN", prepares: false)
      _ = try other.run(
        """
        INSERT INTO download (generation, id, kind, opening, phase, rank, arrival, created_at, updated_at, url)
        SELECT nextval('generation'), '7', kind, opening, phase, rank, arrival, created_at, updated_at, url FROM download
        """, prepares: false)
      let additions = try (0..<Self.count).map { try LedgerAddition(DownloadID("\($0)"), order: Int64($0)) }
      async let outcomes = store.add(additions, at: Date())
      let observer = try ledger.connect()
      while try !observer.seesWaiter(for: other.backend) { await Task.yield() }
      _ = try other.run("COMMIT", prepares: false)
      let known = try await outcomes.filter { !$0.isNew }
      #expect(known.map(\.record.id) == ["7"])
      #expect(try await store.records(of: additions.map(\.request.id)).count == Self.count)
      try await store.close()
    }

    @Test("A role that may have no table of its own adds them, too")
    func withoutRight() async throws {
      let (ledger, database) = try TestLedger.inNewDatabase()
      let owner = try await ledger.open()
      _ = try ledger.connect().run("REVOKE TEMP ON DATABASE \(database) FROM PUBLIC", prepares: false)
      let store = try await PostgresLedger(ledger.addUser(), schema: ledger.schema).open()
      let additions = try additions()
      let outcomes = try await store.add(additions, at: Date())
      #expect(outcomes.allSatisfy { $0.isNew })
      let record = try await store.record(additions[1].request.id)
      #expect(record?.request.metadata == additions[1].request.metadata)
      for store in [owner, store] as [any LedgerStore] { try await store.close() }
    }

    @Test("What the server refuses is reported, and the connection goes on")
    func refused() throws {
      let connection = try TestLedger().connect()
      _ = try connection.run("CREATE TEMP TABLE number (value bigint)", prepares: false)
      for sql in ["COPY number FROM STDIN", "COPY missing FROM STDIN", "COPY"] {
        #expect(throws: PostgresFault.self, "\(sql)") { try connection.copy(sql, Array("no number\n".utf8)) }
        #expect(try connection.number("SELECT 1") == 1)
      }
      // More than the buffers of the connection.
      let rows = (0..<300_000).map { "\($0)\n" }.joined()
      try connection.copy("COPY number FROM STDIN", Array(rows.utf8))
      #expect(try connection.number("SELECT count(DISTINCT value) FROM number") == 300_000)
    }
  }
#endif
