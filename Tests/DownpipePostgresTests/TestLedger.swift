#if Postgres
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import PostgresCluster

  @testable import DownpipePostgres

  /// A ledger in a schema of a test's own.
  struct TestLedger: Sendable {
    let address: String
    let schema: String

    /// - Parameters:
    ///   - address: The database; that of the server of all tests if `nil`.
    ///   - schema: A random name if `nil`.
    init(_ address: String? = nil, schema: String? = nil) throws {
      self.address = try address ?? PostgresCluster.shared.get().address
      self.schema = schema ?? "\(DownloadID())"
    }

    func open(
      connections: Int = 2, clock: @escaping @Sendable () -> Date = { Date() }
    ) async throws -> PostgresLedgerStore {
      try await PostgresLedgerStore.open(
        .init(address: address, schema: schema), schema: schema, connections: connections, clock: clock)
    }

    /// A connection that finds the tables by their names.
    func connect() throws -> PostgresConnection {
      try PostgresConnection.open(.init(address: address, schema: schema), interruptedBy: Interruption())
    }

    /// Makes a role that may use the tables, and no more.
    /// - Returns: The address of the database for the role.
    func addUser() throws -> String {
      let connection = try connect()
      let name = "u\(UInt32.random(in: 0...UInt32.max))"
      _ = try connection.run("CREATE ROLE \(name) LOGIN", prepares: false)
      let schema = Schema.quoted(schema)
      _ = try connection.run("GRANT USAGE ON SCHEMA \(schema) TO \(name)", prepares: false)
      for objects in ["TABLES", "SEQUENCES"] {
        _ = try connection.run("GRANT ALL ON ALL \(objects) IN SCHEMA \(schema) TO \(name)", prepares: false)
      }
      let database = try connection.all("SELECT current_database()")[0][0] ?? ""
      return "postgresql://\(name)@/\(database)?host=\(try PostgresCluster.shared.get().folder)"
    }

    /// A database of a test's own at the server of all tests, for what concerns a whole database.
    static func inNewDatabase() throws -> (ledger: TestLedger, database: String) {
      let shared = try PostgresCluster.shared.get()
      let database = "d\(UInt32.random(in: 0...UInt32.max))"
      let connection = try PostgresConnection.open(.init(address: shared.address), interruptedBy: Interruption())
      _ = try connection.run("CREATE DATABASE \(database)", prepares: false)
      let address = "postgresql://downpipe@/\(database)?host=\(shared.folder)"
      return (try TestLedger(address), database)
    }
  }

  extension PostgresConnection {
    /// The first column of the first row as a number.
    func number(_ sql: String, _ values: PostgresValue...) throws -> Int64 {
      try run(sql, values).integer(0, 0) ?? -1
    }

    /// All values of all rows, as texts.
    func all(_ sql: String, columns: Int = 1) throws -> [[String?]] {
      let rows = try run(sql, prepares: false)
      return (0..<rows.count).map { row in (0..<columns).map { rows.text(row, $0) } }
    }

    /// The number of the server's process for this connection.
    var backend: Int64 { get throws { try number("SELECT pg_backend_pid()") } }

    /// Whether a transaction waits for a lock that a process of the server holds.
    func seesWaiter(for backend: Int64) throws -> Bool {
      try number("SELECT count(*) FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))", .integer(backend))
        > 0
    }

    /// Names the owners so that no process can tell whether they are alive: only their leases decide.
    func renameOwners() throws {
      _ = try run("UPDATE opening SET owner = 'elsewhere/boot/space/1/1/' || number")
    }
  }

  extension LedgerAddition {
    init(_ id: DownloadID, order: Int64, host: String = "example.org") throws {
      self.init(request: try DownloadRequest("https://\(host)/file", id: id), arrival: order)
    }
  }

  extension PostgresLedgerStore {
    /// Adds downloads, which rank in this order.
    func fill(_ ids: [DownloadID], host: String = "example.org", at now: Date = Date()) async throws {
      _ = try await add(ids.enumerated().map { try LedgerAddition($1, order: Int64($0), host: host) }, at: now)
    }

    /// Leases all downloads that are due.
    func leaseAll(at now: Date = Date(), for duration: TimeInterval = 3_000) async throws -> [DownloadRecord] {
      try await lease(LeaseRequest(now: now, until: now + duration) { _ in .take })
    }

    /// Lets all downloads that are due wait, as after an attempt that has failed.
    func delayAll(by seconds: TimeInterval, at now: Date = Date()) async throws {
      for var record in try await leaseAll(at: now) {
        record.phase = .waiting
        record.notBefore = now + seconds
        record.error = DownloadError(.httpStatus, "the server said “503”")
        guard try await save(record, .state, at: now) else {
          throw DownloadError(.ledger, "the save of “\(record.id)” was refused")
        }
      }
    }

    /// Whether a change by others is noticed. A change that is not noticed fails a test after five minutes.
    func hears() async throws -> Bool {
      let end = ContinuousClock.now + .hangLimit
      while try await hasChangesByOtherProcesses() != true {
        guard .now < end else { return false }
        await Task.yield()
      }
      return true
    }

    /// Adds one to a count in the metadata of downloads.
    func increment(_ ids: [DownloadID]) async throws -> LedgerBulkResult {
      try await update(.ids(ids), at: Date()) { record in
        record.request.metadata["count"] = "\((Int(record.request.metadata["count"] ?? "0") ?? -1) + 1)"
      }
    }
  }
#endif
