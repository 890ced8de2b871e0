#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// A row with a damaged column does not affect other records.
  @Suite(.endsHangs)
  struct DamageTests {
    /// The damage to a row, and the column that the error names.
    static let damages: [(String, String)] =
      ["error", "headers", "metadata", "mirrors", "expected_digests", "digests", "head_start", "steps"].map {
        ("\($0) = 'no JSON'", $0)
      } + [
        ("phase = 'lost'", "phase"), ("phase = NULL", "phase"), ("url = NULL", "url"), ("url = 'http://['", "url"),
        ("rank = NULL", "rank"), ("rank = 'text'", "rank"), ("rank = x'00'", "rank"),
        ("rank = randomblob(40)", "rank"), ("arrival = NULL", "arrival"), ("arrival = 'late'", "arrival"),
        ("kind = NULL", "kind"), ("kind = 99", "kind"), ("kind = 'none'", "kind"), ("ranges = '9-1'", "ranges"),
        ("marks = '?'", "marks"), ("awaited = 'rain'", "awaited"), ("artifact_kind = 'socket'", "artifact_kind"),
        ("attempts = 'many'", "attempts"), ("created_at = NULL", "created_at"), ("updated_at = 'now'", "updated_at"),
        ("mirrors = '[\"http://[\"]'", "mirrors"), ("total = x'01'", "total"),
        ("phase = 'transferring'", "owner"),
      ]

    /// A ledger with a damaged row before two readable ones.
    private func withDamage(
      _ assignment: String, _ body: (SQLiteLedger, any LedgerStore) async throws -> Void
    ) async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let store = try await ledger.open()
        _ = try await store.add(
          ["bad", "a", "b"].enumerated().map { try addition(DownloadID($1), Int64($0), tags: ["t"]) }, at: start)
        // A damaged medium may violate NOT NULL.
        let other = try DatabaseQueue(path: ledger.path)
        try await other.writeWithoutTransaction { db in
          try db.execute(
            sql: """
              PRAGMA writable_schema = ON;
              UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'download';
              PRAGMA writable_schema = OFF;
              """)
        }
        try other.close()
        try await damage(ledger, "bad", assignment)
        try await body(ledger, store)
        try await store.close()
      }
    }

    @Test(arguments: damages)
    func nothingElseIsBlocked(_ assignment: String, _ column: String) async throws {
      try await withDamage(assignment) { ledger, store in
        #expect(try await store.damaged().map(\.id) == ["bad"])
        let error = await #expect(throws: DownloadError.self) { try await store.record("bad") }
        #expect(error?.message.contains("“bad”") == true)
        #expect(error?.message.contains("“\(column)”") == true, "\(error?.message ?? "")")
        #expect(Set(try await store.records(DownloadQuery()).map(\.id)) == ["a", "b"])
        try await store.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival) })
        let all = LeaseRequest(now: start, until: time(60)) { _ in .take }
        #expect(try await store.lease(all).map(\.id) == ["a", "b"])
        #expect(try await store.lease(all).map(\.id) == [])
        let next = try await ledger.open()
        _ = try await next.add([try addition("c", 3)], at: start)
        #expect(try await next.lease(all).map(\.id) == ["c"])
        _ = try await next.transition(.all, .pause, at: start)
        _ = try await next.transition(.all, .resume, at: start)
        #expect(try await next.reclaim(at: time(1_000)) <= 1)
        try await next.close()
      }
    }

    @Test(arguments: damages)
    func itCanBeReplacedAndRemoved(_ assignment: String, _ column: String) async throws {
      try await withDamage(assignment) { ledger, store in
        #expect(try await store.add([try addition("bad", 9)], at: start).map(\.isNew) == [true])
        #expect(try await store.damaged() == [])
        #expect(try await store.record("bad")?.generation == 4)
        #expect(try await store.counts(.all) == [.waiting: 3])
        try await damage(ledger, "bad", assignment)
        #expect(try await store.remove(.ids(["bad"])).map(\.generation) == [4])
        #expect(try await store.counts(.all) == [.waiting: 2])
        try await damage(ledger, "a", assignment)
        #expect(Set(try await store.remove(.all).map(\.id)) == ["a", "b"])
        #expect(try await store.counts(.all) == [:])
      }
    }

    @Test("A command that includes a damaged record while everything is watched does not stop the other downloads")
    func commandsWhileWatched() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let downloader = try await Downloader(
          options: DownloaderOptions(time: VirtualTime(), startsSuspended: true)
        ) {
          FakeSource(everyURL: .init([1, 2, 3]))
          FakeStorage()
          ledger
        }
        let url = try #require(URL(string: "https://example.org/file"))
        let names: [DownloadID] = ["bad", "good"]
        for name in names { _ = try await downloader.add(DownloadRequest(url, id: name)) }
        try await damage(ledger, "bad", "error = 'no JSON'")
        let changes = downloader.changes()
        _ = try await downloader.pauseAll()
        _ = try await downloader.resumeAll()
        await downloader.setSuspended(false)
        let good = try await downloader.add(DownloadRequest(url, id: "good"))
        _ = try await good.value
        _ = try await downloader.remove("bad")
        await downloader.shutdown()
        withExtendedLifetime(changes) {}
      }
    }
  }
#endif
