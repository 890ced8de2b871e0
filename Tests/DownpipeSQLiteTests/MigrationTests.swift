#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import DownpipeScheduling
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Ledgers of older versions are migrated without losing data.
  @Suite(.endsHangs)
  struct MigrationTests {
    /// A ledger of the version before lanes, created with that version's statements.
    private func oldLedger(_ path: String, _ rows: [String]) async throws {
      let pool = try DatabasePool(path: path)
      try Schema.migrator.migrate(pool, upTo: "2: proofs, what is awaited, and head starts")
      try await pool.write { db in
        for row in rows { try db.execute(sql: row) }
      }
      try pool.close()
    }

    private func insert(_ id: String, _ columns: String = "", _ values: String = "") -> String {
      """
      INSERT INTO download (id, phase, rank, arrival, created_at, updated_at, url, host, priority\(columns))
      VALUES ('\(id)', 'waiting', x'\(String(repeating: "0", count: 30))07', 5, 100.5, 200.5,
        'https://Example.org:8443/\(id)', 'example.org:8443', -3\(values))
      """
    }

    @Test func aRecordKeepsAllButThePlaceInItsChain() async throws {
      let gone = DownloadError(.network, "gone")
      let error = String(decoding: try JSONEncoder().encode(gone), as: UTF8.self)
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        try await oldLedger(
          path,
          [
            insert(
              "full",
              """
              , intent, tags, metadata, mirrors, headers, expected_size, maximum_size, directory, file_name,
              expected_digests, not_before, attempts, consecutive_failures, bytes_fetched, resumed_from, error, ranges,
              total, etag, last_modified, response_date, content_coding, suggested_name, media_type, is_complete,
              digests, steps_completed, step_note, marks, resource, awaited, repeated_failures
              """,
              """
              , 'prefetch', '["a","b"]', '{"k":"v"}', '["https://two.example/f"]', '[]', 7, 8, 'sub', 'name',
              '[]', 300.25, 4, 3, 99, 11, '\(error)', '0-10,20-30',
              40, 'W/"tag"', 50.5, 60.5, 'gzip', 'suggested', 'a/b', 1,
              '[]', 2, 'note', NULL, 'https://example.org/full', 'network', 2
              """),
            "INSERT INTO tag VALUES ('a', 1), ('b', 1)", "INSERT INTO tally VALUES ('waiting', 1)",
          ])
        let store = try await SQLiteLedger(path).open()
        let record = try #require(try await store.record("full"))
        let url = try #require(URL(string: "https://Example.org:8443/full"))
        let mirror = try #require(URL(string: "https://two.example/f"))
        var expected = DownloadRecord(
          request: DownloadRequest(
            url, id: "full", mirrors: [mirror], priority: Priority(-3), intent: .prefetch, tags: ["a", "b"],
            destination: .init(directory: "sub", name: "name")
          ).with(\.metadata, ["k": "v"]).with(\.expectedSize, 7).with(\.maximumSize, 8),
          generation: 1, arrival: 5, rank: Rank(value: 7), createdAt: Date(timeIntervalSince1970: 100.5))
        expected.updatedAt = Date(timeIntervalSince1970: 200.5)
        expected.notBefore = Date(timeIntervalSince1970: 300.25)
        expected.attempts = 4
        expected.consecutiveFailures = 3
        expected.repeatedFailures = 2
        expected.bytesFetched = 99
        expected.resumedFrom = 11
        expected.error = gone
        expected.awaited = .network
        expected.checkpoint = Checkpoint(
          ranges: ByteRangeSet([0..<10, 20..<30]), total: .known(40),
          validator: Validator(
            entityTag: EntityTag("tag", isWeak: true), lastModified: Date(timeIntervalSince1970: 50.5),
            responseDate: Date(timeIntervalSince1970: 60.5)),
          resource: "https://example.org/full", contentCoding: "gzip", name: "suggested", mediaType: "a/b",
          isComplete: true)
        // The number of completed steps does not tell which ones they were.
        #expect(record.steps.completed.count == 1)
        #expect(record.steps.note == nil)
        expected.steps = record.steps
        #expect(record == expected)
        #expect(try await store.records(DownloadQuery(tag: "b")).map(\.id) == ["full"])
        #expect(try await store.counts(.all) == [.waiting: 1])
        #expect(try await store.damaged() == [])
        try await store.close()
      }
    }

    @Test func phasesOwnersAndArtifactsAreKept() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        try await oldLedger(
          path,
          [
            insert("waiting"),
            insert("done", ", artifact_kind, artifact_path, artifact_name, steps_completed", ", 'file', 'p', 'n', 1"),
            "UPDATE download SET phase = 'finished' WHERE id = 'done'",
            insert("held", ", owner, lease", ", 'stranger', 1000"),
            "UPDATE download SET phase = 'processing' WHERE id = 'held'",
            "INSERT INTO tally VALUES ('waiting', 1), ('finished', 1)",
            // The last generation that was ever used.
            insert("removed"), "DELETE FROM download WHERE id = 'removed'",
          ])
        let store = try await SQLiteLedger(path).open()
        #expect(try await store.counts(.all) == [.waiting: 1, .finished: 1, .processing: 1])
        #expect(
          try await store.record("done")?.steps.artifact
            == StoredArtifact(kind: .file, path: "p", name: "n", size: nil, mediaType: nil))
        #expect(try await store.record("held")?.owner == "stranger")
        #expect(try await store.reclaim(at: Date(timeIntervalSince1970: 999)) == 0)
        #expect(try await store.reclaim(at: Date(timeIntervalSince1970: 1000)) == 1)
        let all = LeaseRequest(now: start, until: time(60), location: "/anywhere") { _ in .take }
        #expect(Set(try await store.lease(all).map(\.id)) == ["waiting", "held"], "they fit any location")
        let new = try await store.add([try addition("new")], at: start)
        #expect(new.map(\.record.generation) == [5], "the generation of a removed download is not reused")
        try await store.close()
      }
    }

    /// A file written by the previous version, whose process was killed during its work.
    @Test func theLastVersionsLedgerGoesOn() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { db in
          try db.execute(sql: OldLedger.dump)
          // Several runs, and a note of a finished download.
          try db.execute(
            sql: """
              UPDATE download SET ranges = '0-10,20-35' WHERE generation = 5;
              UPDATE download SET step_note = 'left' WHERE generation = 1;
              """)
        }
        try old.close()
        let ledger = SQLiteLedger(path)
        let store = try await ledger.open()
        #expect(try await store.damaged() == [])
        let records = try await store.records(DownloadQuery())
        #expect(records.map(\.phase) == [.finished, .failed, .transferring, .waiting])
        #expect(records.allSatisfy { $0.added == nil && !$0.isPausedTogether })
        #expect(records.map(\.generation) == [1, 3, 4, 5])
        #expect(records.map(\.checkpoint.ranges.byteCount) == [300_000, 0, 8_388_608, 25])
        #expect(records[1].error?.code == .httpStatus)
        #expect(records[2].owner == "elsewhere/1")
        #expect(records[2].checkpoint.marks.count == 3)
        #expect(records[3].request.headers.fields.map(\.value) == ["a"])
        #expect(
          try await store.totals(.all)
            == DownloadTotals(
              counts: [.finished: 1, .failed: 1, .transferring: 1, .waiting: 1], received: 300_000 + 8_388_608 + 25,
              expected: 300_000 + 50_000_000, unknownSizes: 2))
        #expect(try await store.unsettledMoves() == [], "the previous version has moved no file")

        // The policy of the old ranks is not known, so all downloads are ranked again, even by the same policy.
        let seen = Mutex<Set<DownloadID>>([])
        try await store.rank(
          by: Ranking(name: "backwards") { context in
            seen.withLock { _ = $0.insert(context.id) }
            return Rank().ascending(.max - context.arrival)
          })
        #expect(seen.withLock { $0 } == Set(records.dropFirst().map(\.id)))
        #expect(try await store.reclaim(at: Date(timeIntervalSince1970: 1_795_308_374)) == 1)
        let leased = try await store.lease(LeaseRequest(now: start, until: time(60)) { _ in .take })
        #expect(leased.map(\.id) == [records[3].id, records[2].id])
        #expect(try await store.add([try addition("new")], at: start).map(\.record.generation) == [7])
        try await store.close()
      }
    }

    @Test("The ledger of 0.1.0 opens, nothing of it is lost, and its downloads go on")
    func released() async throws {
      let data = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "ledger-0.1.0.sql")
      let dump = try String(contentsOf: data, encoding: .utf8)
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { try $0.execute(sql: dump) }
        try old.close()
        let ledger = SQLiteLedger(path)
        let store = try await ledger.open()
        #expect(try await store.damaged() == [])
        let records = try await store.records(DownloadQuery())
        #expect(records.map(\.phase) == [.finished, .failed, .transferring, .waiting])
        #expect(records.map(\.request.url.lastPathComponent) == ["a.bin", "missing.bin", "slow.bin", "busy.bin"])
        #expect(records.map(\.attempts) == [1, 1, 1, 1])
        #expect(records.allSatisfy { $0.versions == VersionLog() && $0.steps.verified.isEmpty })
        #expect(records[0].steps.artifact?.path == "a.bin" && records[0].steps.artifact?.size == 300_000)
        #expect(records[1].error?.httpStatus == 404)
        let film = records[2]
        #expect(film.owner == "elsewhere/2")
        #expect(film.checkpoint.ranges == ByteRangeSet([0..<9_371_648]) && film.checkpoint.total == .known(50_000_000))
        #expect(film.checkpoint.validator?.entityTag == EntityTag("v1"))
        #expect(film.checkpoint.validator?.lastModified == Date(timeIntervalSince1970: 1_795_341_600))
        #expect(film.checkpoint.mediaType == "video/mp4" && film.checkpoint.marks.count == 3)
        #expect(film.request.mirrors.map(\.lastPathComponent) == ["slow.bin"])
        #expect(film.request.headers.fields.map(\.value) == ["a"])
        #expect(film.partialKey == PartialKey(id: film.id, generation: 3), "the name of its bytes on disk")
        #expect(records[3].error?.httpStatus == 503 && records[3].notBefore != nil)

        #expect(try await store.reclaim(at: Date(timeIntervalSince1970: 1_795_935_547)) == 1)
        var leased = try #require(try await store.lease(LeaseRequest(now: start, until: time(60)) { _ in .take }).first)
        #expect(leased.id == film.id && leased.checkpoint == film.checkpoint)
        leased.versions = VersionLog(isInSecond: true, hasOther: true, earlier: leased.checkpoint)
        leased.checkpoint = Checkpoint()
        #expect(try await store.save(leased, [.checkpoint, .steps], at: start))
        try await store.close()
        let next = try await ledger.open()
        let record = try #require(try await next.record(film.id))
        #expect(record.versions.earlier == film.checkpoint && record.partialKeys.contains(film.partialKey))
        try await next.close()
      }
    }

    @Test("Downloads of the last version have no deadline and can be given one")
    func deadlines() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { try $0.execute(sql: OldLedger.dump) }
        try Schema.migrator.migrate(old, upTo: "5: steps of a request, hints of its size")
        try old.close()
        let ledger = SQLiteLedger(path)
        let store = try await ledger.open()
        let records = try await store.records(DownloadQuery())
        #expect(records.count == 4 && records.allSatisfy { $0.request.deadline == nil })
        try await store.rank(by: Ranking(EarliestDeadlineFirst()))
        _ = try await store.update("48cd3ffaf8599173", at: start) { $0.request.deadline = time(0.5) }
        try await store.close()
        let next = try await ledger.open()
        #expect(try await next.record("48cd3ffaf8599173")?.request.deadline == time(0.5))
        #expect(try await next.records(DownloadQuery(order: .rank)).first?.id == "48cd3ffaf8599173")
        try await next.close()
      }
    }

    @Test("A finished download of the last version can be refreshed: its validator was kept")
    func refresh() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { try $0.execute(sql: OldLedger.dump) }
        try Schema.migrator.migrate(old, upTo: "10: changes while an owner works, and reused files")
        try await old.write { db in
          try db.execute(sql: "UPDATE download SET etag = '\"v1\"' WHERE phase = 'finished'")
        }
        try old.close()
        let ledger = SQLiteLedger(path)
        let store = try await ledger.open()
        let records = try await store.records(DownloadQuery())
        #expect(records.count == 4)
        #expect(records.allSatisfy { $0.request.refresh == .never && $0.refreshing == nil })
        #expect(records.allSatisfy { $0.checkpoint.freshUntil == nil })
        let finished = try #require(records.first { $0.phase == .finished })
        // As it was added by the last version, nothing happens; with a refresh it is asked about.
        var addition = LedgerAddition(request: finished.request, arrival: 1)
        #expect(try await store.add([addition], at: start).map(\.isNew) == [false])
        addition.request.refresh = .whenStale
        #expect(try await store.add([addition], at: start).map(\.isNew) == [true])
        try await store.close()
        let next = try await ledger.open()
        let record = try #require(try await next.record(finished.id))
        #expect(record.phase == .waiting && record.refreshing == .asking && record.request.refresh == .whenStale)
        #expect(record.checkpoint.validator?.entityTag == EntityTag("v1") && record.checkpoint.resource != nil)
        #expect(record.earlierArtifact == finished.steps.artifact && record.steps == finished.steps)
        #expect(try await next.damaged() == [])
        try await next.close()
      }
    }

    @Test("Downloads of the last version keep all, and none of them counts as verified")
    func verifiedDigests() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { try $0.execute(sql: OldLedger.dump) }
        try Schema.migrator.migrate(old, upTo: "14: shares of rates")
        let before = try await old.read { db in
          try Row.fetchAll(db, sql: "SELECT * FROM download ORDER BY generation").map { Array($0) }
        }
        try old.close()
        let ledger = SQLiteLedger(path)
        let store = try await ledger.open()
        let records = try await store.records(DownloadQuery())
        #expect(records.count == 4 && records.allSatisfy { $0.steps.verified.isEmpty })
        var record = try #require(try await store.lease(LeaseRequest(now: start, until: time(60)) { _ in .take }).first)
        record.steps.verified = [VerifiedDigest(FileDigest(.md5, bytes: Array(0..<16)), from: .server)]
        #expect(try await store.save(record, .steps, at: start))
        try await store.close()
        let next = try await ledger.open()
        #expect(try await next.record(record.id)?.steps.verified == record.steps.verified)
        #expect(try await next.damaged() == [])
        try await next.close()
        let migrated = try DatabaseQueue(path: path)
        let after = try await migrated.read { db in
          try Row.fetchAll(db, sql: "SELECT * FROM download ORDER BY generation").map { Array($0) }
        }
        let added = ["versions", "verified", "artifact_companions", "artifact_location"]
        #expect(before.count == 4 && after.map { $0.map(\.0) } == before.map { $0.map(\.0) + added })
        for (row, earlier) in zip(after, before) where row[1].1 != record.id.rawValue.databaseValue {
          #expect(row.dropLast(added.count).map(\.1) == earlier.map(\.1))
        }
        try migrated.close()
      }
    }

    /// The table has the columns of `RecordColumns`, also after a migration.
    @Test func theTableHasTheColumns() async throws {
      try await withFolder { folder in
        for old in [false, true] {
          let path = "\(folder)/\(old).sqlite"
          if old { try await oldLedger(path, [insert("a")]) }
          let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
          let names = try await pool.read { db in try db.columns(in: "download").map(\.name) }
          let others = ["kind", "opening", "owner", "lease"]
          #expect(names.sorted() == Set(RecordColumns.all.map(\.name) + others).sorted())
          try pool.close()
        }
      }
    }

    /// A new file has the tables that the migrations make of an empty one, and no migration is left to run.
    @Test func aNewFileIsLikeAMigratedOne() async throws {
      func schema(_ db: Database) throws -> [String] {
        var lines: [String] = []
        let entries = try Row.fetchAll(db, sql: "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name")
        for entry in entries {
          let (type, name, table): (String, String, String) = (entry["type"], entry["name"], entry["tbl_name"])
          // The text of a table differs: an added column is in the line of the last one.
          let text = (entry["sql"] as String? ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
          let isTable = type == "table"
          lines.append("\(type) \(name) \(table) \(isTable ? "" : text)")
          guard isTable else { continue }
          lines.append("\(text.contains("WITHOUT ROWID")) \(text.contains("AUTOINCREMENT"))")
          for column in try Row.fetchAll(db, sql: "PRAGMA table_xinfo(\(name))") { lines.append("\(column)") }
        }
        for index in entries where index["type"] == "index" {
          let name: String = index["name"]
          for column in try Row.fetchAll(db, sql: "PRAGMA index_xinfo('\(name)')") { lines.append("\(name) \(column)") }
        }
        for table in ["counter", "grdb_migrations", "kind", "opening", "tally", "tag", "setting", "dependency"] {
          for row in try Row.fetchAll(db, sql: "SELECT * FROM \(table) ORDER BY 1") { lines.append("\(table) \(row)") }
        }
        return lines + ["\(try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0)"]
      }
      try await withFolder { folder in
        let migrated = try DatabasePool(path: "\(folder)/migrated.sqlite")
        try Schema.migrator.migrate(migrated)
        let new = try LedgerFile(path: "\(folder)/new.sqlite", durability: .process, lockTimeout: .seconds(5)).open()
        let (expected, found) = try (migrated.read(schema), new.read(schema))
        #expect(found == expected)
        #expect(try await new.read(Schema.migrator.hasCompletedMigrations))
        try migrated.close()
        try new.close()
      }
    }

    /// The effects of events are derived from a record with a value in every column; a column without one would be
    /// overlooked.
    @Test func noColumnIsOverlooked() throws {
      let (full, empty) = (EventEffect.full(.waiting), EventEffect.empty(.waiting))
      for column in RecordColumns.all where !column.fields.isDisjoint(with: [.state, .checkpoint, .steps]) {
        // A reused file is read with its kind only, which the events clear.
        if ["phase", "artifact_is_reused"].contains(column.name) { continue }
        #expect(try column.value(full) != column.value(empty), "\(column.name)")
      }
      #expect(EventEffect.all.mapValues { Set($0.keys) }.allSatisfy { $1 == Lifecycle.phases(accepting: $0) })
    }
  }
#endif
