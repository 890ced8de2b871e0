#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  /// A record as far as it could be read.
  struct FoundRecord {
    var record: DownloadRecord
    /// The number of its ``Kind``.
    var kind: Int64
    /// The first column that could not be read.
    var damage: String?

    /// - Throws: ``DamagedRow``.
    func get() throws -> DownloadRecord {
      if let damage { throw DamagedRow(record: record, column: damage) }
      return record
    }
  }

  // Reading records.
  extension LedgerTables {
    /// The records in rows that begin with the columns of ``RecordColumns/list``.
    func found(_ rows: borrowing PostgresRows) throws -> [FoundRecord] {
      try found(rows, .all)
    }

    /// The parts of records in rows that begin with the columns of a list, kind and owner.
    func found(_ rows: borrowing PostgresRows, _ list: ColumnList) throws -> [FoundRecord] {
      let kindColumn = list.columns.count
      var numbers: Set<Int64> = []
      for row in 0..<rows.count { if let number = rows.integer(row, kindColumn) { numbers.insert(number) } }
      let kinds = try kinds(numbers)
      var found: [FoundRecord] = []
      found.reserveCapacity(rows.count)
      for row in 0..<rows.count {
        var one = FoundRecord(record: RecordColumns.blank, kind: rows.integer(row, kindColumn) ?? 0)
        for (index, column) in list.columns.enumerated() {
          if rows.isNull(row, index) {
            if !column.isOptional { one.damage = one.damage ?? column.name }
          } else if !column.read(rows.column(row, index), &one.record) {
            one.damage = one.damage ?? column.name
          }
        }
        if let kind = kinds[one.kind] { kind.write(to: &one.record) } else { one.damage = one.damage ?? "kind" }
        if let owner = rows.integer(row, kindColumn + 1) {
          one.record.owner = try self.owner(owner)
        } else if one.record.phase.isActive {
          one.damage = one.damage ?? "owner"
        }
        if let due = one.record.notBefore { one.record.notBefore = byMachine(due) }
        // The id of the added request is that of the record, even if the JSON differs.
        if one.record.added != nil { one.record.added?.id = one.record.request.id }
        found.append(one)
      }
      return found
    }

    /// The records in rows, without damaged ones.
    func readable(_ rows: borrowing PostgresRows) throws -> [DownloadRecord] {
      try found(rows).compactMap { $0.damage == nil ? $0.record : nil }
    }

    /// - Parameter isLocked: Whether the row is locked up to the end of the transaction.
    /// - Throws: ``DamagedRow``.
    func record(_ id: DownloadID, isLocked: Bool = false) throws -> DownloadRecord? {
      let lock = isLocked ? " FOR UPDATE" : ""
      return try found(try run("SELECT \(RecordColumns.list) FROM download WHERE id = $1\(lock)", .key(id.rawValue)))
        .first?.get()
    }

    func records(of ids: [DownloadID]) throws -> [DownloadRecord] {
      try ids.chunked.flatMap { ids in
        try readable(
          try run(
            "SELECT \(RecordColumns.list) FROM download WHERE id = ANY($1)",
            .texts(ids.map { StoredText.key($0.rawValue) })))
      }
    }

    /// Locks the rows of some generations that fulfil a condition, and reads them in the order of the queue.
    ///
    /// - Parameter lock: Such as `FOR UPDATE`.
    func locked(
      _ generations: [Int64], where condition: String = "TRUE", _ lock: String = "FOR UPDATE"
    ) throws -> [FoundRecord] {
      try found(
        try run(
          """
          SELECT \(RecordColumns.list) FROM download WHERE generation = ANY($1) AND \(condition)
          ORDER BY generation \(lock)
          """, .integers(generations)))
    }

    /// The numbers in the first column of the rows of a statement.
    func numbers(_ sql: String, _ values: [PostgresValue]) throws -> [Int64] {
      let rows = try run(sql, all: values)
      return (0..<rows.count).compactMap { rows.integer($0, 0) }
    }
  }

  extension RandomAccessCollection where Index == Int {
    /// Parts of at most a thousand elements: a statement should not read more rows at a time.
    var chunked: [SubSequence] {
      stride(from: startIndex, to: endIndex, by: 1_000).map { self[$0..<Swift.min($0 + 1_000, endIndex)] }
    }
  }
#endif
