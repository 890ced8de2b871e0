#if Postgres
  import DownpipeColumns

  /// The form of texts in the database, which cannot hold the character NUL.
  ///
  /// U+0001 introduces a pair of characters: `U+0001 0` is NUL, and `U+0001 1` is U+0001. Equal texts have equal forms.
  enum StoredText {
    private static let mark: UInt8 = 1

    static func stored(_ text: String) -> String {
      guard text.utf8.contains(where: { $0 <= mark }) else { return text }
      var bytes: [UInt8] = []
      for byte in text.utf8 {
        if byte <= mark {
          bytes += [mark, byte == 0 ? UInt8(ascii: "0") : UInt8(ascii: "1")]
        } else {
          bytes.append(byte)
        }
      }
      return String(decoding: bytes, as: UTF8.self)
    }

    static func original(_ text: String) -> String {
      guard text.utf8.contains(mark) else { return text }
      var bytes: [UInt8] = []
      var isMarked = false
      for byte in text.utf8 {
        if isMarked {
          bytes.append(byte == UInt8(ascii: "0") ? 0 : mark)
          isMarked = false
        } else if byte == mark {
          isMarked = true
        } else {
          bytes.append(byte)
        }
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  extension PostgresValue {
    /// A text in the form that the database can hold.
    static func stored(_ text: String) -> PostgresValue { .text(StoredText.stored(text)) }

    /// An id or a tag, in its normalized form.
    static func key(_ text: String) -> PostgresValue { .text(StoredText.key(text)) }

    /// The value of a column.
    init(_ column: ColumnValue) {
      self =
        switch column {
        case .null: .null
        case .integer(let value): .integer(value)
        case .real(let value): .real(value)
        case .text(let value): .stored(value)
        case .key(let value): .bytes(Self.bytes(value))
        }
    }

    /// The values of a column in many rows, for `unnest`.
    static func array(_ columns: [ColumnValue]) -> PostgresValue {
      let elements = columns.map { column in
        switch column {
        case .null: "NULL"
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        case .text(let value): quoted(StoredText.stored(value))
        case .key(let value): quoted("\\x" + String(decoding: ColumnValue.hex(value), as: UTF8.self))
        }
      }
      return .text("{" + elements.joined(separator: ",") + "}")
    }

    private static func bytes(_ key: UInt128) -> [UInt8] {
      (0..<16).map { UInt8(truncatingIfNeeded: key >> UInt128(120 - 8 * $0)) }
    }
  }

  extension StoredText {
    /// The stored form of an id or a tag.
    static func key(_ text: String) -> String { stored(RecordColumns.key(text)) }
  }

  extension PostgresRows {
    /// The value of a column of `download`; ``ColumnValue/null`` for a type that no column has.
    func column(_ row: Int, _ column: Int) -> ColumnValue {
      if isNull(row, column) { return .null }
      switch type(column) {
      case .bigint: return integer(row, column).map(ColumnValue.integer) ?? .null
      case .float: return real(row, column).map(ColumnValue.real) ?? .null
      case .bytes:
        // Ranks have 16 bytes; others are damaged.
        guard let bytes = bytes(row, column), bytes.count == 16 else { return .text("") }
        return .key(bytes.reduce(0) { $0 << 8 | UInt128($1) })
      case .text: return text(row, column).map { .text(StoredText.original($0)) } ?? .null
      case nil: return .null
      }
    }

    /// A text in its original form.
    func original(_ row: Int, _ column: Int) -> String? { text(row, column).map(StoredText.original) }

    func key(_ row: Int, _ column: Int) -> UInt128? {
      guard case .key(let key) = self.column(row, column) else { return nil }
      return key
    }
  }
#endif
