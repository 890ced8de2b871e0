#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Selections

    /// The generations of the selected records, without duplicates. A million of them take 8 MB, far less than their
    /// records; what a change does to a record cannot affect which records are changed.
    private func generations(_ selection: LedgerSelection) throws -> [Int64] {
      switch selection {
      case .ids(let ids):
        let find = try prepared("SELECT generation FROM download WHERE id = ?")
        var found: Set<Int64> = []
        return try ids.compactMap { id in
          let statement = find.begin()
          statement.bind(RecordColumns.key(id.rawValue))
          return try statement.first { $0.int64() }
        }.filter { found.insert($0).inserted }
      case .matching(let filter):
        let rows = RowFilter(filter)
        // Records whose phase is damaged are in no other index.
        if filter == .all { return try numbers("SELECT generation FROM download INDEXED BY download_arrival", rows) }
        return try numbers(rows.prefix + rows.select("generation"), rows)
      }
    }

    /// The results of a statement that selects numbers of the filtered rows.
    func numbers(_ sql: String, _ rows: RowFilter) throws -> [Int64] {
      let statement = try prepared(sql)
      try rows.bind(to: statement)
      defer { statement.reset() }
      var numbers: [Int64] = []
      while try statement.step() { numbers.append(statement.int64()) }
      return numbers
    }

    /// The largest number of records for which the lists of lanes are kept up to date.
    private static var fewRecords: Int { 1_000 }

    // MARK: Updating

    func update(
      _ selection: LedgerSelection, at now: Date, _ change: (inout DownloadRecord) throws -> Void
    ) throws -> LedgerBulkResult {
      let generations = try generations(selection)
      if generations.count > Self.fewRecords { forgetLanes() }
      var result = LedgerBulkResult()
      var dependents = NewDependents()
      for generation in generations {
        guard let known = try readable(generation), let record = try update(known, at: now, change) else { continue }
        result.note(known.id)
        try note(record, since: known, in: &dependents)
      }
      try checkCycles(dependents)
      return result
    }

    // MARK: Removing

    func remove(
      _ selection: LedgerSelection, leaving choose: (DownloadRecord) -> LedgerDeletion?
    ) throws -> LedgerRemoval {
      let generations = try generations(selection)
      if generations.count > Self.fewRecords { forgetLanes() }
      let find = try prepared(Row.select("generation = ? AND (owner IS NULL OR owner = ?)"))
      let opening = try opening()
      var removal = LedgerRemoval()
      for generation in generations {
        let statement = find.begin()
        statement.bind(generation)
        statement.bind(opening)
        guard let row = try statement.first(row), let left = choose(row.record) else { continue }
        try delete(row)
        removal.note(left.isEmpty ? nil : try keep(left))
      }
      return removal
    }

    /// - Returns: The number under which it is kept.
    private func keep(_ deletion: LedgerDeletion) throws -> Int64 {
      let statement = try prepared(.insertDeletion)
      statement.bind(deletion.location)
      statement.bind(try deletion.content)
      guard let number = try statement.first({ $0.int64() }) else {
        throw LedgerFault.error("SQLite has given no number")
      }
      return number
    }

    func deletions(at location: String?, in numbers: ClosedRange<Int64>, limit: Int) throws -> [LedgerDeletion] {
      let statement = try prepared(.deletions)
      statement.bind(numbers.lowerBound)
      statement.bind(numbers.upperBound)
      statement.bind(location)
      statement.bind(Int64(limit))
      defer { statement.reset() }
      var deletions: [LedgerDeletion] = []
      while try statement.step() {
        let number = statement.int64()
        deletions.append(LedgerDeletion(stored: statement.text(), number: number, location: location))
      }
      return deletions
    }

    func forget(deletions numbers: [Int64]) throws {
      let statement = try prepared(.forgetDeletion)
      for number in numbers {
        statement.begin().bind(number)
        try statement.run()
      }
    }

    /// Deletes the record with an id, damaged or not.
    func forget(_ id: String) throws {
      let statement = try prepared(Row.select("id = ?"))
      statement.bind(id)
      if let row = try statement.first(row) { try delete(row) }
    }

    /// A row to delete.
    private struct Row {
      var record: DownloadRecord
      var lane: Lane
      /// The phase in which the record is counted; `nil` if that is unknown.
      var phase: DownloadState.Phase?

      static func select(_ condition: String) -> String {
        "SELECT opening, kind, phase, \(RecordColumns.list) FROM download WHERE \(condition)"
      }
    }

    /// The current row of a statement of ``Row/select(_:)``.
    private func row(_ statement: PreparedStatement) throws -> Row {
      let lane = Lane(opening: statement.int64(), kind: statement.int64())
      let phase = DownloadState.Phase(rawValue: statement.text())
      do {
        return Row(record: try record(statement), lane: lane, phase: phase)
      } catch let damaged as DamagedRow {
        let isCounted = !["phase", "owner"].contains(damaged.column)
        return Row(record: damaged.record, lane: lane, phase: isCounted ? phase : nil)
      }
    }

    private func delete(_ row: Row) throws {
      let record = row.record
      for tag in try kind(row.lane.kind)?.candidate.tags ?? [] { try setTag(tag, of: record.generation, to: false) }
      let statement = try prepared(.deleteRow)
      statement.bind(record.generation)
      guard try statement.run() == 1 else { return }
      try setDependencies([], of: record.generation, before: record.waitsFor)
      if let phase = row.phase {
        moved(from: phase, to: nil)
        if phase == .waiting { noteChange(of: record.generation, in: row.lane) }
      } else {
        try recount()
      }
    }
  }
#endif
