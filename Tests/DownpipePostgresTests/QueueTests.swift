#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Waiting downloads that are ready, those that wait for a time and those that wait for others are in different indexes.
  @Suite(.endsHangs)
  struct QueueTests {
    /// Opens a ledger with downloads of all these kinds, in turn, and some that do not wait.
    private func store(_ count: Int) async throws -> (TestLedger, PostgresLedgerStore) {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      let additions = try (0..<count).map { number in
        var request = try DownloadRequest("https://example.org/\(number)", id: DownloadID("\(number)"))
        if number % 4 == 2 { request.after = ["0"] }
        request.priority = [.high, .normal, .low][number % 3]
        return LedgerAddition(request: request, arrival: Int64(number % 7))
      }
      try await store.rank(by: Ranking(name: "test") { Rank().descending($0.priority).ascending($0.arrival) })
      _ = try await store.add(additions, at: Date())
      let connection = try ledger.connect()
      for (remainder, change) in [(1, "not_before = 5e9"), (3, "phase = 'paused'")] {
        _ = try connection.run("UPDATE download SET \(change) WHERE id::bigint % 4 = \(remainder)", prepares: false)
      }
      return (ledger, store)
    }

    @Test("The pages of the queue are those of one list in the order of the queue")
    func pages() async throws {
      let (ledger, store) = try await store(200)
      let rows = try ledger.connect().all(
        "SELECT id FROM download WHERE phase = 'waiting' ORDER BY rank, arrival, generation")
      let expected = rows.compactMap { $0[0].map { DownloadID($0) } }
      #expect(expected.count == 150)
      for size in [1, 7, 60, 1000] {
        var found: [DownloadID] = []
        while true {
          var query = DownloadQuery(phases: [.waiting], location: "/here", order: .rank)
          (query.limit, query.offset) = (size, found.count)
          let page = try await store.records(query)
          found += page.map(\.id)
          if page.count < size { break }
        }
        #expect(found == expected, "pages of \(size)")
      }
      var query = DownloadQuery(phases: [.waiting], order: .rank)
      (query.limit, query.offset) = (.max, .max)
      #expect(try await store.records(query).isEmpty)
      try await store.close()
    }

    @Test("Every set of phases finds its rows", arguments: 0..<128)
    func phases(_ bits: Int) async throws {
      let all = DownloadState.Phase.allCases
      try #require(all.count == 7)
      let phases = Set(all.indices.filter { bits >> $0 & 1 == 1 }.map { all[$0] })
      let (ledger, store) = try await store(40)
      _ = try ledger.connect().run("UPDATE download SET phase = 'finished' WHERE id::bigint % 8 = 7", prepares: false)
      _ = try ledger.connect().run(
        "UPDATE download SET phase = 'transferring', owner = 1, lease = 5e9 WHERE id::bigint % 8 = 4", prepares: false)
      let names = (phases.map { "'\($0.rawValue)'" } + ["'none'"]).joined(separator: ", ")
      let expected = try ledger.connect().all("SELECT id FROM download WHERE phase IN (\(names))")
      let found = try await store.records(DownloadQuery(phases: phases))
      #expect(Set(found.map(\.id)) == Set(expected.compactMap { $0[0].map { DownloadID($0) } }))
      try await store.close()
    }

    @Test("No page of the queue reads all downloads")
    func plan() async throws {
      let (ledger, store) = try await store(2_000)
      let connection = try ledger.connect()
      _ = try connection.run("ANALYZE download", prepares: false)
      for kind in ["seqscan", "bitmapscan"] { _ = try connection.run("SET enable_\(kind) = off", prepares: false) }
      let page = try connection.all(
        "EXPLAIN SELECT * FROM \(LedgerTables.queue("TRUE", 10)) ORDER BY \(Schema.order) LIMIT 10"
      ).compactMap { $0[0] }
      for index in ["download_ready", "download_delayed", "download_dependent"] {
        #expect(page.contains { $0.contains("Index Scan using \(index)") }, "\(page)")
      }
      // Of those that wait for a time.
      #expect(page.count { $0.contains("Sort Key") } <= 2, "\(page)")
      _ = try connection.run("SET enable_bitmapscan = on", prepares: false)
      for phases in [[.waiting], [.transferring, .processing], [.failed]] as [Set<DownloadState.Phase>] {
        let plan = try connection.all("EXPLAIN SELECT * FROM download WHERE \(Condition.isIn(phases))")
        #expect(!plan.contains { $0[0]?.contains("Seq Scan") == true }, "\(phases)")
        // What bulk commands ask for.
        var text = Condition()
        let bulk = text.matching(LedgerSelection.matching(.phases(phases)))
        #expect(bulk == Condition.isIn(phases))
      }
      try await store.close()
    }
  }
#endif
