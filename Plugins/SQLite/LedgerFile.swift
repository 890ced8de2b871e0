#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  /// The file of a ledger: finds it, makes it, checks that it is one of ours.
  struct LedgerFile: Sendable {
    /// Marks our files among SQLite's: “Dpip”.
    static let applicationID: Int32 = 0x4470_6970

    let path: String
    let durability: Durability
    let lockTimeout: Duration

    init(path: String, durability: Durability, lockTimeout: Duration) {
      // An absolute path: the working directory may change while the ledger is open.
      self.path = path.isEmpty ? "" : Self.absolute(path)
      self.durability = durability
      self.lockTimeout = lockTimeout
    }

    private static func absolute(_ path: String) -> String {
      let expanded = (path as NSString).expandingTildeInPath
      return expanded.hasPrefix("/") ? expanded : FileManager.default.currentDirectoryPath + "/" + expanded
    }

    /// Opens the database; blocks.
    func open() throws -> DatabasePool {
      try checkPath()
      do {
        return try retryingWhileBusy {
          let pool = try DatabasePool(path: path, configuration: configuration)
          do {
            try pool.read(checkIsOurs)
            // Older versions made them as the process's mask has it.
            for file in [path, path + "-wal", path + "-shm"] { PrivateFile.narrow(file) }
            try migrate(pool)
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
        throw LedgerFault.error("a ledger needs the path of a file: an empty path, or one with a NUL, is none")
      }
      var isDirectory: ObjCBool = false
      if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
        guard !isDirectory.boolValue else {
          throw LedgerFault.error(
            "the ledger cannot be “\(path)”, which is a folder: give the path of a file, such as "
              + "\(path)/ledger.sqlite")
        }
        return
      }
      let folder = (path as NSString).deletingLastPathComponent
      do {
        try PrivateFile.makeFolder(folder)
      } catch {
        throw LedgerFault.error(
          "the ledger's folder “\(folder)” cannot be made: choose a folder that may be written, or make it by hand",
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
      // A transaction that cannot even be rolled back, because the disk is broken, is an error of ours; without
      // this GRDB would end the process.
      configuration.allowsUnsafeTransactions = true
      configuration.prepareDatabase { db in
        // 8 MiB of pages; and a log that a large transaction blew up is cut back.
        try db.execute(sql: "PRAGMA cache_size = -8192")
        // A log of 16 MiB before it is copied into the file: a page that changes often is copied once then.
        guard !db.configuration.readonly else { return }
        try db.execute(sql: "PRAGMA journal_size_limit = 33554432; PRAGMA wal_autocheckpoint = 4000")
      }
      return configuration
    }

    /// What `.power` asks for; on Apple's systems only a full fsync reaches the medium.
    private static func flushEachCommit(_ db: Database) throws {
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
    }

    /// Refuses the database of another program, before a single byte of it is changed by a migration.
    private func checkIsOurs(_ db: Database) throws {
      // The query first: it fixes what this transaction sees, which the pragma alone does not. Another opening may
      // be making the tables right now; GRDB commits the one that lists migrations before the first migration.
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
          "“\(path)” was written by a newer version of Downpipe: update this program, or give it another ledger")
      }
      if try pool.read(migrator.hasCompletedMigrations) { return }
      try Self.migrate({ try migrator.migrate(pool) }, applied: { try pool.read(migrator.appliedIdentifiers) })
    }

    /// Brings the tables up to date, beside other processes that do the same.
    ///
    /// Each migration is a transaction of its own, so that another process may carry one out between two of ours, which
    /// then fails, as what it makes is there already. Ours goes on from there: it fails for good only where nothing
    /// was done meanwhile.
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

    /// Changing to the write-ahead log answers "busy" at once, without the timeout, while another process
    /// does the same: it is tried again until the timeout has passed.
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
