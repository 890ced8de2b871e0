#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import GRDB

  extension LedgerConnection {
    func records(_ query: DownloadQuery) throws -> [DownloadRecord] {
      let rows = RowFilter(query.filter, isByChange: query.order == .latestChange)
      guard !rows.phases.isEmpty, query.limit ?? 1 > 0 else { return [] }
      let keys = try keys(query, rows)
      let order = order(query)
      var records: [DownloadRecord] = []
      var offset = max(0, query.offset)
      // Damaged records are left out, and the page is filled with the records that follow.
      while records.count < query.limit ?? .max {
        // In SQLite a limit of −1 means no limit.
        let room = query.limit.map { $0 - records.count } ?? -1
        // The page is selected with indexes only; then its records are read.
        let statement = try prepared(
          """
          \(rows.prefix)SELECT \(RecordColumns.list) FROM download
          WHERE generation IN (SELECT generation FROM (\(keys) ORDER BY \(order) LIMIT ? OFFSET ?)) ORDER BY \(order)
          """)
        try rows.bind(to: statement)
        statement.bind(Int64(room))
        statement.bind(Int64(offset))
        var count = 0
        defer { statement.reset() }
        while try statement.step() {
          count += 1
          do { records.append(try record(statement)) } catch is DamagedRow {}
        }
        if query.limit == nil || count < room { break }
        offset += count
      }
      return records
    }

    private func order(_ query: DownloadQuery) -> String {
      switch query.order {
      case .arrival: "arrival, generation"
      case .rank: "rank, arrival, generation"
      case .latestChange: "updated_at DESC, generation DESC"
      }
    }

    /// Selects generations and sort keys for a query.
    private func keys(_ query: DownloadQuery, _ rows: RowFilter) throws -> String {
      let columns = "generation, rank, arrival, updated_at"
      if !rows.isListed, !rows.namesKinds, query.order == .arrival, try isCommon(rows.phases) {
        let list = rows.phases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return "SELECT \(columns) FROM download INDEXED BY download_arrival WHERE phase IN (\(list))\(rows.isWanted)"
      }
      return rows.select(columns)
    }

    /// The `FROM` and `WHERE` clauses that find the records of a phase without reading others.
    static func places(of phase: DownloadState.Phase) -> [(from: String, where: String)] {
      let isIn = "phase = '\(phase.rawValue)'"
      return switch phase {
      case .waiting:
        [
          ("download INDEXED BY download_ready", StatementText.isReady),
          ("download INDEXED BY download_delayed", StatementText.isDelayed),
          ("download INDEXED BY download_dependent", StatementText.isDependent),
        ]
      case .transferring, .processing: [("download INDEXED BY download_held", "\(isIn) AND owner IS NOT NULL")]
      default: [("download INDEXED BY download_resting", isIn)]
      }
    }

    /// Whether so many records are in the phases that reading all records in order of arrival soon fills a page.
    private func isCommon(_ phases: [DownloadState.Phase]) throws -> Bool {
      let counts = try counts(.all)
      let meant = phases.reduce(0) { $0 + (counts[$1] ?? 0) }
      return meant > 1000 && meant * 20 > counts.values.reduce(0, +)
    }

    func counts(_ filter: DownloadFilter) throws -> [DownloadState.Phase: Int] {
      let rows = RowFilter(try withoutCommonLocation(filter))
      let sql: String
      if rows.isListed {
        sql = "\(rows.prefix)\(rows.select("phase, count(*)")) GROUP BY phase"
      } else if rows.hasKinds {
        let counts = rows.phases.flatMap { phase in
          rows.places(of: phase).map { "SELECT '\(phase.rawValue)', count(*) FROM \($0.from) WHERE \($0.where)" }
        }
        if counts.isEmpty { return [:] }
        sql = rows.prefix + counts.joined(separator: " UNION ALL ")
      } else {
        sql = """
          SELECT phase, count FROM tally WHERE count > 0 UNION ALL
          SELECT phase, count(*) FROM download WHERE owner IS NOT NULL GROUP BY phase
          """
      }
      let statement = try prepared(sql)
      try rows.bind(to: statement)
      defer { statement.reset() }
      var counts: [DownloadState.Phase: Int] = [:]
      while try statement.step() {
        guard let phase = DownloadState.Phase(rawValue: statement.text()), rows.phases.contains(phase) else { continue }
        // A damaged number must not overflow a sum.
        let count = Int(min(statement.int64(), 1 << 40))
        if count > 0 { counts[phase, default: 0] += count }
      }
      return counts
    }

    /// The filter without its location, unless there are records of other locations: the numbers of all records are at hand.
    private func withoutCommonLocation(_ filter: DownloadFilter) throws -> DownloadFilter {
      guard let location = filter.location else { return filter }
      let statement = try prepared("SELECT EXISTS (SELECT 1 FROM kind WHERE location <> ?)")
      statement.bind(location)
      defer { statement.reset() }
      var filter = filter
      if try statement.step(), statement.int64() == 0 { filter.location = nil }
      return filter
    }

    /// Computes the sums of ``DownloadTotals/add(_:)`` in SQL.
    func totals(_ filter: DownloadFilter) throws -> DownloadTotals {
      let filter = try withoutCommonLocation(filter)
      let size =
        "coalesce(iif(phase = 'finished', artifact_size, NULL), total, expected_size, size_hint)"
      let have = "coalesce(iif(phase = 'finished', \(size), NULL), on_disk)"
      let columns = "\(have) AS have, \(size) AS size"
      var counted = filter
      counted.phases = Set(RowFilter(filter).phases).subtracting([.cancelled])
      let rows = RowFilter(counted)
      // Sums over nearly all records read the table in its own order.
      let selected =
        filter == .all ? "SELECT \(columns) FROM download NOT INDEXED WHERE phase <> 'cancelled'" : rows.select(columns)
      // The sums are computed in two halves: sizes given by servers and users may overflow 64 bits, which is an error
      // in SQLite.
      let statement = try prepared(
        """
        \(rows.prefix)SELECT sum(have >> 32), sum(have & 0xffffffff), sum(size >> 32), sum(size & 0xffffffff),
          sum(size IS NULL)
        FROM (\(selected))
        """)
      try rows.bind(to: statement)
      var totals = DownloadTotals(counts: try counts(filter))
      defer { statement.reset() }
      guard try statement.step() else { return totals }
      totals.received = Self.sum(statement.int64(), statement.int64())
      totals.expected = Self.sum(statement.int64(), statement.int64())
      totals.unknownSizes = Int(statement.int64())
      return totals
    }

    private static func sum(_ high: Int64, _ low: Int64) -> Int64 {
      Int64(clamping: Int128(high) << 32 + Int128(low))
    }

    func unsettledMoves() throws -> [DownloadRecord] {
      let statement = try prepared(
        """
        SELECT \(RecordColumns.list) FROM download INDEXED BY download_unsettled
        WHERE phase = 'finished' AND step_note IS NOT NULL ORDER BY generation
        """)
      defer { statement.reset() }
      var records: [DownloadRecord] = []
      while try statement.step() {
        do { records.append(try record(statement)) } catch is DamagedRow {}
      }
      return records
    }

    /// Reads every record and returns those that are damaged.
    func damaged() throws -> [DamagedRecord] {
      let statement = try prepared("SELECT \(RecordColumns.list) FROM download NOT INDEXED ORDER BY generation")
      defer { statement.reset() }
      var damaged: [DamagedRecord] = []
      while try statement.step() {
        do { _ = try record(statement) } catch let row as DamagedRow {
          damaged.append(DamagedRecord(id: row.id, reason: row.reason))
        }
      }
      return damaged
    }
  }
#endif
