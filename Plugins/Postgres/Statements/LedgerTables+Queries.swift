#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Queries.
  extension LedgerTables {
    func records(_ query: DownloadQuery) throws -> [DownloadRecord] {
      guard query.limit ?? 1 > 0 else { return [] }
      let isQueue = query.order == .rank && query.filter.phases == [.waiting]
      var filter = query.filter
      if isQueue { filter.phases = nil }
      var text = Condition()
      let matches = text.matching(filter)
      let order =
        switch query.order {
        case .arrival: "arrival, generation"
        case .rank: Schema.order
        case .latestChange: "updated_at DESC, generation DESC"
        }
      var records: [DownloadRecord] = []
      var offset = min(max(0, query.offset), 1 << 60)
      // Damaged records are left out, and the page is filled with the records that follow.
      while records.count < query.limit ?? .max {
        let room = query.limit.map { $0 - records.count }
        let limit = room.map { "LIMIT \($0)" } ?? ""
        let table = isQueue ? Self.queue(matches, room.map { min($0, 1 << 60) + offset }) : "download WHERE \(matches)"
        // The numbers are part of the text: there are few different pages, and the server sees how few rows it needs.
        let rows = try connection.run(
          "SELECT \(RecordColumns.list) FROM \(table) ORDER BY \(order) \(limit) OFFSET \(offset)",
          text.values, prepares: false)
        records += try readable(rows)
        guard let room, rows.count == room else { break }
        offset += rows.count
      }
      return records
    }

    /// The first waiting downloads in the order of the queue. Two indexes have this order, and those that wait for a time are
    /// sorted: the server does not see that by itself, and would sort all.
    static func queue(_ matches: String, _ limit: Int?) -> String {
      let limit = limit.map { "LIMIT \($0)" } ?? ""
      let parts = [Schema.isReady, Schema.isDelayed, Schema.isDependent].map { part in
        "(SELECT * FROM download WHERE \(part) AND \(matches) ORDER BY \(Schema.order) \(limit))"
      }
      return "(\(parts.joined(separator: " UNION ALL "))) AS download"
    }

    func counts(_ filter: DownloadFilter) throws -> [DownloadState.Phase: Int] {
      let filter = try withoutCommonLocation(filter)
      var text = Condition()
      let sql: String
      if filter.tag == nil, filter.ids == nil, filter.host == nil, filter.intent == nil, filter.location == nil {
        sql = Self.countsOfAll
      } else {
        sql = "SELECT phase, count(*) FROM download WHERE \(text.matching(filter)) GROUP BY phase"
      }
      let counts = Self.counts(try run(sql, all: text.values))
      guard let phases = filter.phases else { return counts }
      return counts.filter { phases.contains($0.key) }
    }

    /// The counts of all downloads.
    static func counts(_ connection: PostgresConnection) throws -> [DownloadState.Phase: Int] {
      counts(try connection.run(countsOfAll))
    }

    private static let countsOfAll = """
      SELECT phase, sum(count)::bigint FROM tally GROUP BY phase
      UNION ALL SELECT phase, count(*) FROM download WHERE owner IS NOT NULL GROUP BY phase
      """

    private static func counts(_ rows: borrowing PostgresRows) -> [DownloadState.Phase: Int] {
      var counts: [DownloadState.Phase: Int] = [:]
      for row in 0..<rows.count {
        guard let phase = rows.text(row, 0).flatMap(DownloadState.Phase.init(rawValue:)),
          let count = rows.integer(row, 1), count > 0
        else { continue }
        // A damaged number must not overflow a sum.
        counts[phase, default: 0] += Int(min(count, 1 << 40))
      }
      return counts
    }

    /// The filter without its location, unless there are records of other locations: the numbers of all records are at hand.
    private func withoutCommonLocation(_ filter: DownloadFilter) throws -> DownloadFilter {
      guard let location = filter.location else { return filter }
      let rows = try run(
        "SELECT count(*) FROM (SELECT 1 FROM kind WHERE location <> $1 LIMIT 1) AS other", .stored(location))
      var filter = filter
      if rows.integer(0, 0) == 0 { filter.location = nil }
      return filter
    }

    /// Computes the sums of ``DownloadTotals/add(_:)``.
    func totals(_ filter: DownloadFilter) throws -> DownloadTotals {
      let filter = try withoutCommonLocation(filter)
      let size =
        "coalesce(CASE WHEN phase = 'finished' THEN artifact_size END, total, expected_size, size_hint)"
      let have = "coalesce(CASE WHEN phase = 'finished' THEN \(size) END, on_disk)"
      var text = Condition()
      let matches = text.matching(filter)
      // Sums of bigint are numeric: sizes given by servers and users may overflow 64 bits.
      func sum(_ column: String) -> String { "least(coalesce(sum(\(column)), 0), \(Int64.max))::bigint" }
      let rows = try run(
        """
        SELECT \(sum("have")), \(sum("size")), count(*) - count(size)
        FROM (SELECT \(have) AS have, \(size) AS size FROM download WHERE phase <> 'cancelled' AND \(matches)) AS row
        """, all: text.values)
      var totals = DownloadTotals(counts: try counts(filter))
      totals.received = rows.integer(0, 0) ?? 0
      totals.expected = rows.integer(0, 1) ?? 0
      totals.unknownSizes = Int(clamping: rows.integer(0, 2) ?? 0)
      return totals
    }

    func unsettledMoves() throws -> [DownloadRecord] {
      try readable(
        try run(
          """
          SELECT \(RecordColumns.list) FROM download WHERE phase = 'finished' AND step_note IS NOT NULL
          ORDER BY generation
          """))
    }

    /// Reads every record and returns those that are damaged.
    func damaged() throws -> [DamagedRecord] {
      var damaged: [DamagedRecord] = []
      var last = Int64.min
      while true {
        let rows = try run(
          "SELECT \(RecordColumns.list) FROM download WHERE generation > $1 ORDER BY generation LIMIT 1000",
          .integer(last))
        for found in try found(rows) {
          last = found.record.generation
          guard let column = found.damage else { continue }
          let row = DamagedRow(record: found.record, column: column)
          damaged.append(DamagedRecord(id: row.id, reason: row.reason))
        }
        if rows.count < 1_000 { return damaged }
      }
    }

    func nextDue(after now: Date) throws -> Date? {
      let rows = try run(
        "SELECT min(not_before) FROM download WHERE \(Schema.isDelayed) AND not_before > $1",
        .real(byServer(now).timeIntervalSince1970))
      guard let found = rows.real(0, 0) else { return nil }
      let due = byMachine(Date(timeIntervalSince1970: found))
      return due <= now.furthestDue ? due : nil
    }
  }
#endif
