#if Postgres
  @_spi(Ledger) public import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// A ledger in a PostgreSQL database, which any number of machines share: each download is leased to one of them.
  ///
  /// ```swift
  /// PostgresLedger("postgresql://fetcher@db.example.org/downloads")
  /// PostgresLedger("service=downloads", schema: "nightly", connections: 8)
  /// ```
  /// The tables are made when the ledger is opened for the first time, in a schema of their own. Server version 13 or
  /// later; the connections keep prepared statements and settings, so a pooler between them and the server has to pool
  /// sessions, not transactions.
  ///
  /// A change is durable when the server has committed it, as far as its settings `fsync` and `synchronous_commit` say. While
  /// the server cannot be reached, downloads that run go on until shortly before their leases end; what they have to save
  /// waits.
  ///
  /// Partials stay where they were begun. A download whose lease moves to another machine goes on from what the storage of
  /// that machine has: from the beginning, unless they share the storage.
  ///
  /// The ledger stores requests as clear text, including URLs and header fields such as `Authorization`, because a
  /// download needs them later: restrict who may read the schema, and use TLS (`sslmode=verify-full`) between machines.
  public struct PostgresLedger: Ledger {
    /// The connection URI or string, as passed to the initializer. It may contain a password.
    public let address: String
    /// The schema of the tables.
    public let schema: String
    /// The largest number of connections for calls; one more listens for changes by others.
    public let connections: Int
    /// How long a statement may take before the server ends it.
    public let statementLimit: Duration
    /// Whether notifications wake a downloader. A simulation has no threads but its own.
    var wakes = true
    /// The clock of this machine; another one in tests.
    var clock: @Sendable () -> Date = { Date() }

    /// Creates a description of a ledger. The database is not connected before the downloader starts.
    ///
    /// - Parameters:
    ///   - address: A connection URI (`postgresql://user@host/database?sslmode=verify-full`) or a string of keywords and
    ///     values, as libpq understands them: several hosts, service files, `~/.pgpass` and the variables `PG…` included.
    ///     The database has to exist, and the user has to be allowed to make a schema in it, or to use this one.
    ///   - schema: The schema of the tables, which is made if it does not exist. Ledgers in different schemas have nothing in
    ///     common.
    ///   - connections: The largest number of connections for calls, at least 1.
    ///   - statementLimit: How long a statement may take before the server ends it and the call fails.
    public init(
      _ address: String, schema: String = "downpipe", connections: Int = 4, statementLimit: Duration = .seconds(60)
    ) {
      self.address = address
      self.schema = schema
      self.connections = max(1, connections)
      self.statementLimit = statementLimit
    }

    var settings: PostgresConnection.Settings {
      PostgresConnection.Settings(address: address, schema: schema, statementLimit: statementLimit)
    }

    /// The database and the schema, as the pipeline prints them: without the user and the password.
    public var summary: String {
      let place = (try? PostgresAddress(address))?.summary ?? ""
      return [place, schema == "downpipe" ? "" : "schema \(schema)"].filter { !$0.isEmpty }.joined(separator: ", ")
    }

    /// Connects to the database, and makes the tables or migrates them to the current version.
    ///
    /// - Throws: `DownloadError` with `.ledger`, whose message says why the database cannot be used and what to do.
    @_spi(Ledger) public func open() async throws -> any LedgerStore {
      do {
        return try await PostgresLedgerStore.open(
          settings, schema: schema, connections: connections, wakes: wakes, clock: clock)
      } catch {
        throw PostgresFault.translate(error)
      }
    }
  }
#endif
