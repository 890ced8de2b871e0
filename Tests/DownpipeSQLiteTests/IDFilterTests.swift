#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// A filter that names downloads looks each of them up, beside any number of other downloads.
  @Suite(.endsHangs)
  struct IDFilterTests {
    private static let filters: [DownloadFilter] = [
      .ids(["a"]), DownloadFilter(phases: [.waiting, .failed], ids: ["a"]), DownloadFilter(tag: "t", ids: ["a"]),
      DownloadFilter(host: "one.example", intent: .silent, ids: ["a"]),
    ]

    @Test("No plan of SQLite reads the table, or an index from its beginning", arguments: filters)
    func plans(filter: DownloadFilter) async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l.sqlite", durability: .process, lockTimeout: .seconds(5)).open()
        var filter = filter
        filter.location = "/d"
        let rows = RowFilter(filter)
        var statements = [rows.prefix + rows.select("generation, rank, arrival, updated_at")]
        for phase in rows.phases {
          for place in rows.places(of: phase) {
            statements.append("\(rows.prefix)UPDATE \(place.from) SET phase = 'paused' WHERE \(place.where)")
          }
        }
        for sql in statements {
          let plan = try await pool.read { db in
            let count = sql.count { $0 == "?" }
            return try Row.fetchAll(
              db, sql: "EXPLAIN QUERY PLAN \(sql)", arguments: StatementArguments(Array(repeating: "[]", count: count))
            ).map { $0["detail"] as String }
          }
          #expect(plan.contains { $0.hasPrefix("SEARCH download USING") && $0.contains("(id=?)") }, "\(plan)")
          #expect(!plan.contains { $0.hasPrefix("SCAN download") }, "\(plan)")
          #expect(plan.contains("SEARCH download USING INTEGER PRIMARY KEY (rowid=?)"), "\(plan)")
        }
        try pool.close()
      }
    }

    @Test("Thousands of ids are selected, removed and counted, with any characters")
    func thousands() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        let ids = (0..<5_000).map { DownloadID("\"\($0)\\ é\n,]") }
        _ = try await store.add(
          try ids.enumerated().map {
            LedgerAddition(request: try DownloadRequest("https://a.example/", id: $1), arrival: Int64($0))
          }, at: start)
        // Ids are equal when they are equal as text, composed or not.
        let chosen = ids.prefix(4_000).map { DownloadID($0.rawValue.decomposedStringWithCanonicalMapping) }
        #expect(try await store.counts(.ids(chosen)) == [.waiting: 4_000])
        #expect(try await store.transition(.matching(.ids(chosen)), .pause, at: start).count == 4_000)
        #expect(try await store.records(DownloadQuery(.ids(chosen.prefix(10)))).map(\.id) == Array(chosen.prefix(10)))
        #expect(try await store.remove(.matching(.ids(chosen))).count == 4_000)
        #expect(try await store.counts(.all).filter { $0.value > 0 } == [.waiting: 1_000])
        try await store.close()
      }
    }
  }
#endif
