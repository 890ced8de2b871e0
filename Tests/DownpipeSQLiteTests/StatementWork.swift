#if SQLite
  @_spi(Ledger) import DownpipeCore
  import GRDB
  import GRDBSQLite
  import Synchronization

  @testable import DownpipeSQLite

  /// Counts the work of all statements on the connections of a ledger, in steps of SQLite's virtual machine. A row that
  /// a statement reads costs several steps.
  final class StatementWork: Sendable {
    private struct State {
      var total = 0
      var largest: (steps: Int, sql: String) = (0, "")
    }
    private let state = Mutex(State())

    /// The steps since the last call, and the statement with the most.
    func take() -> (steps: Int, worst: String) {
      state.withLock { state in
        defer { state = State() }
        return (state.total, "\(state.largest.steps) steps: \(state.largest.sql)")
      }
    }

    fileprivate func add(_ statement: OpaquePointer) {
      let steps = Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1))
      state.withLock { state in
        state.total += steps
        if steps > state.largest.steps {
          state.largest = (steps, sqlite3_sql(statement).map { String(cString: $0) } ?? "")
        }
      }
    }

    /// Counts on a connection, which must not outlive this object.
    func count(on db: Database) {
      _ = sqlite3_trace_v2(
        db.sqliteConnection, UInt32(SQLITE_TRACE_PROFILE),
        { _, context, statement, _ in
          if let context, let statement {
            Unmanaged<StatementWork>.fromOpaque(context).takeUnretainedValue().add(OpaquePointer(statement))
          }
          return 0
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// A ledger whose statements are counted.
  struct CountedLedger: Ledger {
    let path: String
    let work: StatementWork

    func open() async throws -> any LedgerStore {
      var file = LedgerFile(path: path, durability: .process, lockTimeout: .seconds(60))
      file.onConnection = { [work] in work.count(on: $0) }
      return SQLiteLedgerStore(pool: try file.open(), path: path)
    }
  }
#endif
