#if Postgres
  import DownpipeColumns
  import DownpipeCore

  // Many rows are copied into a table of the transaction first, which costs the server less than arrays of their values.
  extension LedgerTables {
    /// The number of rows from which on they are copied.
    static let leastCopied = 500

    /// Columns of rows, without those that are NULL in all rows, as most are.
    struct CopiedColumns {
      let columns: [(name: String, values: [ColumnValue])]

      init(_ names: [String], _ values: [[ColumnValue]]) {
        columns = zip(names, values).filter { column in column.1.contains { $0 != .null } }.map { ($0, $1) }
      }

      var names: String { columns.map(\.name).joined(separator: ", ") }
      var types: String { columns.map { "\($0.name) \(Schema.type(of: $0.name))" }.joined(separator: ", ") }
      var rows: [UInt8] { CopyText.rows(of: columns.map(\.values)) }
    }

    /// Inserts rows by `COPY` and one statement, unless their ids are known.
    ///
    /// - Returns: The generations of the inserted ones; `nil` if this role may not make the table.
    func copy(_ columns: CopiedColumns) throws -> Set<Int64>? {
      guard try run("SELECT has_database_privilege(current_database(), 'TEMP')").boolean(0, 0) == true else {
        return nil
      }
      let names = columns.names
      // Not for longer: the server cannot vacuum a table of a connection. None of these statements is prepared: there is one
      // for each combination of columns.
      _ = try connection.run("CREATE TEMP TABLE downpipe_added (\(columns.types)) ON COMMIT DROP", prepares: false)
      try connection.copy("COPY pg_temp.downpipe_added (\(names)) FROM STDIN", columns.rows)
      let inserted = try connection.run(
        """
        INSERT INTO download (\(names)) SELECT \(names) FROM pg_temp.downpipe_added
        ON CONFLICT (id) DO NOTHING RETURNING generation
        """, prepares: false)
      _ = try connection.run("DROP TABLE pg_temp.downpipe_added", prepares: false)
      return Set((0..<inserted.count).compactMap { inserted.integer($0, 0) })
    }
  }

  /// The text format of `COPY`, as PostgreSQL's manual describes it: fields between tabs, a line for each row, `\N` for a
  /// null, and a backslash before what would be read otherwise.
  enum CopyText {
    /// The rows of columns with equally many values.
    static func rows(of columns: [[ColumnValue]]) -> [UInt8] {
      var text: [UInt8] = []
      for row in columns.first?.indices ?? 0..<0 {
        for (index, column) in columns.enumerated() {
          if index > 0 { text.append(UInt8(ascii: "\t")) }
          append(column[row], to: &text)
        }
        text.append(UInt8(ascii: "\n"))
      }
      return text
    }

    private static func append(_ value: ColumnValue, to text: inout [UInt8]) {
      switch value {
      case .null: text += "\\N".utf8
      case .integer(let number): text += "\(number)".utf8
      case .real(let number): text += "\(number)".utf8
      case .text(let value):
        for byte in StoredText.stored(value).utf8 {
          switch byte {
          case UInt8(ascii: "\\"): text += "\\\\".utf8
          case UInt8(ascii: "\n"): text += "\\n".utf8
          case UInt8(ascii: "\r"): text += "\\r".utf8
          case UInt8(ascii: "\t"): text += "\\t".utf8
          default: text.append(byte)
          }
        }
      case .key(let key):
        text += "\\\\x".utf8
        text += ColumnValue.hex(key)
      }
    }
  }
#endif
