import Downpipe

#if Postgres
  import DownpipePostgres
#endif

/// Where the ledger of a command is.
enum LedgerLocation: Sendable, Hashable {
  /// A file, by its absolute path.
  case file(String)
  /// A PostgreSQL database, by its connection URI, which may contain a password.
  case database(String)

  /// - Parameter text: A path, or the connection URI of a database.
  init(_ text: String) throws(UsageError) {
    let isDatabase = ["postgres://", "postgresql://"].contains { text.lowercased().hasPrefix($0) }
    // Not shown: it may contain a password.
    let keywords = ["host", "hostaddr", "service", "dbname", "user", "password"]
    let hasKeyword = keywords.contains { text.hasPrefix("\($0)=") || text.contains(" \($0)=") }
    guard isDatabase || !hasKeyword || text.contains("/") else {
      throw UsageError("--ledger: write the address of a database as postgresql://user@host/database")
    }
    self = isDatabase ? .database(text) : .file(try Folder.absolutePath(text))
  }

  /// The path of a ledger in a file.
  var path: String? {
    if case .file(let path) = self { path } else { nil }
  }

  /// Whether other machines work on the same downloads, in folders of their own.
  var isShared: Bool { path == nil }

  /// Whether the ledger cannot be opened without being made.
  var isMissing: Bool { path.map(Folder.kind) == .some(nil) }

  /// - Throws: ``UsageError`` for a ledger that this build does not have.
  func check() throws(UsageError) { _ = try stage() }

  /// The stage of the pipeline.
  func stage() throws(UsageError) -> any Ledger {
    switch self {
    case .file(let path):
      #if SQLite
        return SQLiteLedger(path)
      #else
        throw UsageError("this downpipe was built without SQLite, and cannot use “\(path)”: use --ledger none")
      #endif
    case .database(let address):
      #if Postgres
        return PostgresLedger(address)
      #else
        throw UsageError("--ledger: this downpipe was built without PostgreSQL: build it with the trait Postgres")
      #endif
    }
  }
}
