#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  /// The file of a ledger: creates and opens it, and checks that it is a ledger.
  struct LedgerFile: Sendable {
    /// Identifies ledgers among SQLite files: “Dpip”.
    static let applicationID: Int32 = 0x4470_6970

    let path: String
    let durability: Durability
    let lockTimeout: Duration
    /// Called with each new connection; for tests.
    var onConnection: (@Sendable (Database) -> Void)?

    init(path: String, durability: Durability, lockTimeout: Duration) {
      // The path is absolute because the working directory may change while the ledger is open.
      self.path = path.isEmpty ? "" : Self.absolute(path)
      self.durability = durability
      self.lockTimeout = lockTimeout
    }

    private static func absolute(_ path: String) -> String {
      let expanded = (path as NSString).expandingTildeInPath
      let here = FileManager.default.currentDirectoryPath
      // In a deleted working directory the path stays relative, and cannot be opened.
      return expanded.hasPrefix("/") || !here.hasPrefix("/") ? expanded : here + "/" + expanded
    }

    /// Opens the database; blocks.
    func open() throws -> DatabasePool {
      try checkPath()
      do {
        return try retryingWhileBusy {
          let pool = try DatabasePool(path: path, configuration: configuration)
          do {
            let isNew = try pool.writeWithoutTransaction(Schema.create)
            if !isNew { try pool.read(checkIsOurs) }
            // Older versions created these files with the process's file mode mask.
            for file in [path, path + "-wal", path + "-shm"] { PrivateFile.narrow(file) }
            if !isNew { try migrate(pool) }
            if durability == .power { try pool.writeWithoutTransaction(LedgerFile.flushEachCommit) }
          } catch {
            try? pool.close()
            throw error
          }
          return pool
        }
      } catch {
        throw LedgerFault.translate(error, path: path)
      }
    }

    private func checkPath() throws {
      guard !path.isEmpty, !path.utf8.contains(0) else {
        throw LedgerFault.error("the ledger's path is empty or contains a NUL: give the path of a file")
      }
      var isDirectory: ObjCBool = false
      if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
        guard !isDirectory.boolValue else {
          throw LedgerFault.error(
            "the ledger's path “\(path)” is a folder: give the path of a file, such as "
              + "\(path)/ledger.sqlite")
        }
        return
      }
      let folder = (path as NSString).deletingLastPathComponent
      do {
        try PrivateFile.makeFolder(folder)
      } catch {
        throw LedgerFault.error(
          "the ledger's folder “\(folder)” cannot be created: choose a writable folder, or create it by hand",
          cause: error)
      }
      PrivateFile.make(path)
    }

    private var configuration: Configuration {
      var configuration = Configuration()
      configuration.label = "Downpipe ledger"
      configuration.busyMode = .timeout(lockTimeout / .seconds(1))
      configuration.maximumReaderCount = 3
      configuration.foreignKeysEnabled = false
      // A transaction that cannot be rolled back, because the disk is broken, becomes a ledger error; without this
      // GRDB would end the process.
      configuration.allowsUnsafeTransactions = true
      configuration.prepareDatabase { [onConnection] db in
        onConnection?(db)
        // A cache of 8 MiB. The size limit below truncates the log after a large transaction.
        try db.execute(sql: "PRAGMA cache_size = -8192")
        // The log is copied into the file at 16 MiB: a page that changes often is copied only once.
        guard !db.configuration.readonly else { return }
        try db.execute(sql: "PRAGMA journal_size_limit = 33554432; PRAGMA wal_autocheckpoint = 4000")
      }
      return configuration
    }

    /// Sets up `.power`; on Apple's systems only a full fsync reaches the medium.
    private static func flushEachCommit(_ db: Database) throws {
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
    }

    /// Rejects the database of another program before a migration changes it.
    private func checkIsOurs(_ db: Database) throws {
      // The query comes first because it fixes the snapshot of this transaction, which the pragma alone does not.
      // Another store may be creating the tables now; GRDB commits its table of migrations before the first migration.
      let tables =
        try Int.fetchOne(
          db, sql: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name <> 'grdb_migrations'") ?? 0
      let id = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
      if id == Self.applicationID { return }
      guard id == 0, tables == 0 else {
        throw LedgerFault.error(
          "“\(path)” is a SQLite database of another program: give the ledger a file of its own")
      }
    }

    private func migrate(_ pool: DatabasePool) throws {
      let migrator = Schema.migrator
      if try pool.read(migrator.hasBeenSuperseded) {
        throw LedgerFault.error(
          "“\(path)” was written by a newer version of Downpipe: update this program, or use another ledger")
      }
      if try pool.read(migrator.hasCompletedMigrations) { return }
      try Self.migrate({ try migrator.migrate(pool) }, applied: { try pool.read(migrator.appliedIdentifiers) })
    }

    /// Migrates the tables, while other processes may do the same.
    ///
    /// Each migration is a transaction. If another process runs a migration first, it fails here because its tables
    /// exist already; this process then continues with the next one. An error is only thrown if no migration was
    /// applied meanwhile.
    static func migrate(_ migrate: () throws -> Void, applied: () throws -> Set<String>) throws {
      while true {
        let before = try applied()
        do {
          return try migrate()
        } catch {
          guard try applied() != before else { throw error }
        }
      }
    }

    /// Retries until the lock timeout has passed. Changing to the write-ahead log fails with "busy" at once, without
    /// SQLite's timeout, while another process does the same.
    private func retryingWhileBusy<Value>(_ body: () throws -> Value) throws -> Value {
      let deadline = ContinuousClock.now + lockTimeout
      while true {
        do {
          return try body()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
          guard ContinuousClock.now < deadline else { throw error }
          Thread.sleep(forTimeInterval: 0.01)
        }
      }
    }
  }
#endif
