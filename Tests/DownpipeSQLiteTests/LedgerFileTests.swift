#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// Opening a ledger: the files that are created, the errors, and whether their messages say what to do.
  @Suite(.endsHangs)
  struct LedgerFileTests {
    private func expectRefusal(
      _ ledger: SQLiteLedger, _ words: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async {
      let error = await #expect(throws: DownloadError.self, sourceLocation: sourceLocation) { try await ledger.open() }
      #expect(error?.code == .ledger, sourceLocation: sourceLocation)
      #expect(error?.stage == "SQLiteLedger", sourceLocation: sourceLocation)
      for word in words {
        #expect(
          error?.message.contains(word) == true, "“\(error?.message ?? "")” should say “\(word)”",
          sourceLocation: sourceLocation)
      }
    }

    @Test func missingFoldersAreMade() async throws {
      try await withFolder { folder in
        let path = "\(folder)/deep/er/ledger.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add([try addition("a")], at: start)
        try await store.close()
        #expect(FileManager.default.fileExists(atPath: path))
      }
    }

    @Test func closingLeavesOneFile() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        _ = try await store.add([try addition("a")], at: start)
        _ = try await store.record("a")
        try await store.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["l.sqlite"])
      }
    }

    @Test(arguments: [(Durability.process, 1), (.power, 2)])
    func commitsAreFlushedAsAsked(_ durability: Durability, _ synchronous: Int) async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: durability, lockTimeout: .seconds(5)).open()
        #expect(
          try await pool.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA synchronous") } == synchronous)
        #expect(
          try await pool.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA journal_mode") } == "wal")
        try pool.close()
      }
    }

    @Test func pathsThatAreNoFilesAreRefused() async throws {
      try await withFolder { folder in
        await expectRefusal(SQLiteLedger(""), "path of a file")
        await expectRefusal(SQLiteLedger("\(folder)/a\0b"), "NUL")
        await expectRefusal(SQLiteLedger(folder), "is a folder", "ledger.sqlite")
        try Data("x".utf8).write(to: URL(filePath: "\(folder)/file"))
        await expectRefusal(SQLiteLedger("\(folder)/file/ledger.sqlite"), "folder", "cannot be created")
        #expect(try String(contentsOfFile: "\(folder)/file", encoding: .utf8) == "x")
      }
    }

    @Test func anotherFileIsLeftAlone() async throws {
      try await withFolder { folder in
        let text = String(repeating: "This is a letter and not a database. ", count: 50)
        try text.write(toFile: "\(folder)/letter", atomically: true, encoding: .utf8)
        await expectRefusal(SQLiteLedger("\(folder)/letter"), "not a SQLite database", "another path")
        #expect(try String(contentsOfFile: "\(folder)/letter", encoding: .utf8) == text)
      }
    }

    @Test func anotherProgramsDatabaseIsLeftAlone() async throws {
      try await withFolder { folder in
        let other = try DatabaseQueue(path: "\(folder)/other.sqlite")
        try await other.write { try $0.execute(sql: "CREATE TABLE recipe (name TEXT)") }
        try other.close()
        await expectRefusal(SQLiteLedger("\(folder)/other.sqlite"), "another program")
        let again = try DatabaseQueue(path: "\(folder)/other.sqlite")
        let tables = try await again.read { try String.fetchAll($0, sql: "SELECT name FROM sqlite_schema") }
        #expect(tables == ["recipe"])
        try again.close()
      }
    }

    @Test func aNewerSchemaIsRefused() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        try await SQLiteLedger(path).open().close()
        let newer = try DatabaseQueue(path: path)
        try await newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99: the future')") }
        try newer.close()
        await expectRefusal(SQLiteLedger(path), "newer version", "update")
      }
    }

    @Test func aDamagedFileIsReported() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add(try (0..<2_000).map { try addition(DownloadID("\($0)"), $0) }, at: start)
        try await store.close()
        // The header is intact; every page after it is damaged.
        var bytes = try Data(contentsOf: URL(filePath: path))
        for index in 4_096..<bytes.count { bytes[index] = 0xA5 }
        try bytes.write(to: URL(filePath: path))

        let error = await #expect(throws: DownloadError.self) {
          let store = try await SQLiteLedger(path).open()
          _ = try await store.add([try addition("new")], at: start)
        }
        #expect(error?.code == .ledger)
        #expect(error?.message.contains("damaged") == true)
        #expect(error?.message.contains("move it away") == true)
      }
    }

    @Test func aLockedFileIsReported() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let ledger = SQLiteLedger(path, lockTimeout: .milliseconds(20))
        let store = try await ledger.open()
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: path, configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let error = await #expect(throws: DownloadError.self) {
          try await store.add([try addition("a")], at: start)
        }
        #expect(error?.code == .ledger)
        #expect(error?.message.contains("locked by another program") == true)
        #expect(try await store.record("a") == nil, "reading is still possible")

        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        _ = try await store.add([try addition("a")], at: start)
        #expect(try await store.record("a") != nil)
        try other.close()
        try await store.close()
      }
    }

    @Test func manyMayOpenAFreshFileAtOnce() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let stores = try await withThrowingTaskGroup(of: (any LedgerStore).self) { group in
          for _ in 0..<8 { group.addTask { try await SQLiteLedger(path).open() } }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(stores.map(\.owner)).count == 8)
        for (index, store) in stores.enumerated() {
          _ = try await store.add([try addition(DownloadID("\(index)"))], at: start)
        }
        #expect(try await stores[0].counts(.all) == [.waiting: 8])
        for store in stores { try await store.close() }
      }
    }

    @Test func aClosedStoreSaysSo() async throws {
      try await withFolder { folder in
        let store = try await SQLiteLedger("\(folder)/l.sqlite").open()
        try await store.close()
        try await store.close()
        for call: @Sendable () async throws -> Void in [
          { _ = try await store.record("a") }, { _ = try await store.add([], at: start) },
          { _ = try await store.reclaim(at: start) },
        ] {
          let error = await #expect(throws: DownloadError.self) { try await call() }
          #expect(error?.code == .ledger)
          #expect(error?.message.contains("has been closed") == true)
        }
      }
    }

    @Test func aDamagedRecordIsNamed() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add([try addition("good"), try addition("bad")], at: start)
        let other = try DatabaseQueue(path: path)
        try await other.write { try $0.execute(sql: "UPDATE download SET ranges = '9-1' WHERE id = 'bad'") }
        try other.close()
        let error = await #expect(throws: DownloadError.self) { try await store.record("bad") }
        #expect(error?.message.contains("“bad”") == true)
        #expect(error?.message.contains("“ranges”") == true)
        #expect(try await store.record("good") != nil)
        try await store.close()
      }
    }
  }
#endif
