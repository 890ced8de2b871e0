#if Postgres
  import CPostgres

  /// The rows of a result, in the text format of the protocol.
  struct PostgresRows: ~Copyable {
    private let result: OpaquePointer
    let count: Int

    /// - Parameter result: Freed with the rows.
    init(_ result: OpaquePointer) {
      self.result = result
      count = Int(PQntuples(result))
    }

    deinit { PQclear(result) }

    /// The types of columns that the ledger uses, by their numbers in the server's catalogue.
    enum ColumnType: UInt32 {
      case bytes = 17
      case bigint = 20
      case text = 25
      case float = 701
    }

    func type(_ column: Int) -> ColumnType? { ColumnType(rawValue: PQftype(result, Int32(column))) }

    /// The tag of the command, such as `COMMIT` or `UPDATE 3`.
    var tag: String { PQcmdStatus(result).map { String(cString: $0) } ?? "" }

    /// The number of rows that the statement has changed.
    var changed: Int { PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

    func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(result, Int32(row), Int32(column)) != 0 }

    /// A value as text; `nil` for a null.
    func text(_ row: Int, _ column: Int) -> String? {
      guard let bytes = value(row, column) else { return nil }
      return String(decoding: bytes, as: UTF8.self)
    }

    func integer(_ row: Int, _ column: Int) -> Int64? { text(row, column).flatMap { Int64($0) } }
    func real(_ row: Int, _ column: Int) -> Double? { text(row, column).flatMap { Double($0) } }
    func boolean(_ row: Int, _ column: Int) -> Bool? { text(row, column).map { $0 == "t" } }

    /// The value of a `bytea`; `nil` for a null, and for what is none.
    func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
      guard let text = value(row, column), text.count >= 2, text.count % 2 == 0, text[0] == UInt8(ascii: "\\"),
        text[1] == UInt8(ascii: "x")
      else { return nil }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(text.count / 2 - 1)
      for index in stride(from: 2, to: text.count, by: 2) {
        guard let high = Self.digit(text[index]), let low = Self.digit(text[index + 1]) else { return nil }
        bytes.append(high << 4 | low)
      }
      return bytes
    }

    private func value(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer? {
      guard !isNull(row, column), let start = PQgetvalue(result, Int32(row), Int32(column)) else { return nil }
      return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, Int32(row), Int32(column))))
    }

    private static func digit(_ character: UInt8) -> UInt8? {
      switch character {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
      default: nil
      }
    }
  }
#endif
