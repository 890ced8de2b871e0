#if SQLite
  import DownpipeColumns
  import Foundation
  import GRDB
  import GRDBSQLite

  /// A compiled statement that binds parameters and reads columns with SQLite's functions, in their order.
  ///
  /// GRDB's functions end a text at its first NUL, but ids, tags and header values may contain one. They also box each
  /// value, which would slow down leases and bulk additions.
  final class PreparedStatement {
    /// Keeps the compiled statement alive.
    private let statement: Statement
    private let handle: OpaquePointer
    private var lastBound: Int32 = 0
    private var nextColumn: Int32 = 0
    /// Stores the texts of one run, so that SQLite does not allocate a copy of each.
    private let texts = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 1)
    private var textsEnd = 0

    init(_ statement: Statement) {
      self.statement = statement
      handle = statement.sqliteStatement
    }

    deinit {
      // GRDB may reuse the statement.
      sqlite3_clear_bindings(handle)
      texts.deallocate()
    }

    /// Resets the parameters, which are partly bound if binding has failed before.
    func begin() -> PreparedStatement {
      lastBound = 0
      textsEnd = 0
      return self
    }

    /// The number of steps that SQLite's virtual machine has run; for tests.
    var workDone: Int { Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 0)) }

    // MARK: Binding the next parameter

    /// Tells SQLite to copy the bound bytes.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    /// Stores bytes until the statement is reset; returns `nil` if they do not fit.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
      guard bytes.count <= texts.count - textsEnd, let base = texts.baseAddress else { return nil }
      let start = base + textsEnd
      if let source = bytes.baseAddress { start.copyMemory(from: source, byteCount: bytes.count) }
      textsEnd += bytes.count
      return UnsafeRawPointer(start)
    }

    private func next() -> Int32 {
      lastBound += 1
      return lastBound
    }

    func bind(_ value: Int64?) {
      let position = next()
      if let value { sqlite3_bind_int64(handle, position, value) } else { sqlite3_bind_null(handle, position) }
    }

    func bind(_ value: Double?) {
      let position = next()
      if let value { sqlite3_bind_double(handle, position, value) } else { sqlite3_bind_null(handle, position) }
    }

    func bind(_ value: Date?) { bind(value?.timeIntervalSince1970) }

    func bind(_ value: String?) {
      let position = next()
      guard var value else {
        sqlite3_bind_null(handle, position)
        return
      }
      value.withUTF8 { bytes in
        let count = CInt(clamping: bytes.count)
        if let kept = keep(UnsafeRawBufferPointer(bytes)) {
          _ = sqlite3_bind_text(handle, position, kept.assumingMemoryBound(to: CChar.self), count, nil)
        } else {
          bytes.withMemoryRebound(to: CChar.self) { characters in
            // An empty string may have no address, which would bind NULL.
            if let start = characters.baseAddress {
              _ = sqlite3_bind_text(handle, position, start, count, Self.transient)
            } else {
              _ = sqlite3_bind_text(handle, position, "", 0, Self.transient)
            }
          }
        }
      }
    }

    func bind(blob value: UInt128) {
      let position = next()
      withUnsafeBytes(of: value.bigEndian) { bytes in
        if let kept = keep(bytes) {
          _ = sqlite3_bind_blob(handle, position, kept, CInt(bytes.count), nil)
        } else {
          _ = sqlite3_bind_blob(handle, position, bytes.baseAddress, CInt(bytes.count), Self.transient)
        }
      }
    }

    func bind(_ value: ColumnValue) {
      switch value {
      case .null: bind(nil as Int64?)
      case .integer(let value): bind(value)
      case .real(let value): bind(value)
      case .text(let value): bind(value)
      case .key(let value): bind(blob: value)
      }
    }

    // MARK: Running

    /// Runs the statement up to its next row.
    /// - Returns: `false` if there are no more rows.
    func step() throws -> Bool {
      nextColumn = 0
      switch sqlite3_step(handle) {
      case SQLITE_ROW: return true
      case SQLITE_DONE: return false
      case let code:
        let connection = sqlite3_db_handle(handle)
        let message = sqlite3_errmsg(connection).map { String(cString: $0) }
        let extended = sqlite3_extended_errcode(connection)
        reset()
        throw DatabaseError(resultCode: ResultCode(rawValue: extended == 0 ? code : extended), message: message)
      }
    }

    /// Prepares the statement for another run, and releases its lock.
    func reset() {
      lastBound = 0
      textsEnd = 0
      sqlite3_reset(handle)
    }

    /// Runs a statement without results to its end.
    /// - Returns: The number of rows that the statement changed.
    @discardableResult
    func run() throws -> Int {
      defer { reset() }
      while try step() {}
      return Int(sqlite3_changes64(sqlite3_db_handle(handle)))
    }

    // MARK: Reading the next column of the current row

    private func nextColumnIndex() -> Int32 {
      defer { nextColumn += 1 }
      return nextColumn
    }

    /// The number of the next column.
    var column: Int { Int(nextColumn) }

    /// Passes over columns that are NULL.
    /// - Returns: The next column with a value; `nil` if all columns before `end` have been passed or read.
    func passNulls(before end: Int) -> Int? {
      while nextColumn < end {
        if sqlite3_column_type(handle, nextColumn) != SQLITE_NULL { return Int(nextColumn) }
        nextColumn += 1
      }
      return nil
    }

    func isNull(_ column: Int) -> Bool { sqlite3_column_type(handle, Int32(column)) == SQLITE_NULL }

    /// The value; `nil` for a blob that is not a key.
    func value() -> ColumnValue? {
      let column = nextColumnIndex()
      switch sqlite3_column_type(handle, column) {
      case SQLITE_NULL: return .null
      case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
      case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, column))
      case SQLITE_TEXT: return .text(text(at: column) ?? "")
      default:
        guard let start = sqlite3_column_blob(handle, column), sqlite3_column_bytes(handle, column) == 16 else {
          return nil
        }
        return .key(UnsafeRawBufferPointer(start: start, count: 16).reduce(0) { $0 << 8 | UInt128($1) })
      }
    }

    /// The number; 0 for any other value.
    func int64() -> Int64 { sqlite3_column_int64(handle, nextColumnIndex()) }

    func optionalDate() -> Date? {
      let column = nextColumnIndex()
      guard sqlite3_column_type(handle, column) != SQLITE_NULL else { return nil }
      return Date(timeIntervalSince1970: sqlite3_column_double(handle, column))
    }

    func optionalText() -> String? { text(at: nextColumnIndex()) }

    func text() -> String { optionalText() ?? "" }

    /// The key; `nil` for any other value.
    func key() -> UInt128? {
      if case .key(let key) = value() { key } else { nil }
    }

    private func text(at column: Int32) -> String? {
      guard let start = sqlite3_column_text(handle, column) else { return nil }
      let count = Int(sqlite3_column_bytes(handle, column))
      return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }
  }

  extension Database {
    /// Whether a transaction is open. Some failures end it implicitly.
    var hasTransaction: Bool { sqlite3_get_autocommit(sqliteConnection) == 0 }
  }
#endif
