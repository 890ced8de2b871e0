#if SQLite
  import Foundation
  import GRDB
  import GRDBSQLite

  /// A compiled statement with SQLite's own binding and columns.
  ///
  /// GRDB binds and reads text up to its first NUL; ids, tags and header values come from outside and may
  /// hold one. It also boxes each value, which claims and bulk additions would feel.
  struct PreparedStatement {
    /// Keeps the compiled statement alive.
    private let statement: Statement
    private let handle: OpaquePointer

    init(_ statement: Statement) {
      self.statement = statement
      handle = statement.sqliteStatement
    }

    // MARK: Binding

    /// Tells SQLite to copy what is bound.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    func bind(_ value: Int64?, _ position: Int32) {
      if let value { sqlite3_bind_int64(handle, position, value) } else { sqlite3_bind_null(handle, position) }
    }

    func bind(_ value: Double?, _ position: Int32) {
      if let value { sqlite3_bind_double(handle, position, value) } else { sqlite3_bind_null(handle, position) }
    }

    func bind(_ value: Date?, _ position: Int32) { bind(value?.timeIntervalSince1970, position) }

    func bind(_ value: String?, _ position: Int32) {
      guard var value else {
        sqlite3_bind_null(handle, position)
        return
      }
      value.withUTF8 { bytes in
        // An empty string may have no address, which would bind NULL.
        bytes.withMemoryRebound(to: CChar.self) { characters in
          if let start = characters.baseAddress {
            _ = sqlite3_bind_text(handle, position, start, CInt(clamping: characters.count), Self.transient)
          } else {
            _ = sqlite3_bind_text(handle, position, "", 0, Self.transient)
          }
        }
      }
    }

    func bind(blob value: UInt128, _ position: Int32) {
      withUnsafeBytes(of: value.bigEndian) { bytes in
        _ = sqlite3_bind_blob(handle, position, bytes.baseAddress, CInt(bytes.count), Self.transient)
      }
    }

    // MARK: Running

    /// Goes to the next row.
    /// - Returns: false when there is none, or the statement gives none.
    func step() throws -> Bool {
      switch sqlite3_step(handle) {
      case SQLITE_ROW: return true
      case SQLITE_DONE: return false
      case let code:
        let connection = sqlite3_db_handle(handle)
        let message = sqlite3_errmsg(connection).map { String(cString: $0) }
        let extended = sqlite3_extended_errcode(connection)
        sqlite3_reset(handle)
        throw DatabaseError(resultCode: ResultCode(rawValue: extended == 0 ? code : extended), message: message)
      }
    }

    /// Makes the statement ready for another run, and frees its lock.
    func reset() { sqlite3_reset(handle) }

    /// Runs a statement that gives no rows.
    /// - Returns: how many rows it changed.
    @discardableResult
    func run() throws -> Int {
      defer { reset() }
      while try step() {}
      return Int(sqlite3_changes64(sqlite3_db_handle(handle)))
    }

    // MARK: Columns of the present row

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func optionalInt64(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    func date(_ column: Int32) -> Date {
      Date(timeIntervalSince1970: sqlite3_column_double(handle, column))
    }

    func optionalDate(_ column: Int32) -> Date? { isNull(column) ? nil : date(column) }

    func optionalText(_ column: Int32) -> String? {
      guard let start = sqlite3_column_text(handle, column) else { return nil }
      let count = Int(sqlite3_column_bytes(handle, column))
      return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func text(_ column: Int32) -> String { optionalText(column) ?? "" }

    func uint128(_ column: Int32) -> UInt128 {
      guard let start = sqlite3_column_blob(handle, column) else { return 0 }
      let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
      return bytes.prefix(16).reduce(0) { $0 << 8 | UInt128($1) }
    }
  }

  extension Database {
    /// The last row that was inserted.
    var lastRow: Int64 { sqlite3_last_insert_rowid(sqliteConnection) }

    /// Whether a transaction is open: some failures end it without being asked.
    var hasTransaction: Bool { sqlite3_get_autocommit(sqliteConnection) == 0 }
  }
#endif
