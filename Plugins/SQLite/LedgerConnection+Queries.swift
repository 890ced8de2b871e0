#if SQLite
  import DownpipeCore
  import GRDB

  extension LedgerConnection {
    func records(_ query: LedgerQuery) throws -> [DownloadRecord] {
      let phases = DownloadState.Phase.allCases.filter { query.phases?.contains($0) ?? true }
      guard !phases.isEmpty, query.limit > 0 else { return [] }
      let (keys, order) = keys(query, phases)
      // The page is chosen in the indexes; only its own records are read.
      let statement = try prepared(
        """
        SELECT \(RecordColumns.list) FROM download
        WHERE generation IN (SELECT generation FROM (\(keys) ORDER BY \(order) LIMIT ?2 OFFSET ?3)) ORDER BY \(order)
        """)
      if let tag = query.tag { statement.bind(RecordColumns.key(tag), 1) }
      statement.bind(Int64(query.limit), 2)
      statement.bind(Int64(max(0, query.offset)), 3)
      defer { statement.reset() }
      var records: [DownloadRecord] = []
      while try statement.step() { records.append(try RecordColumns.record(statement)) }
      return records
    }

    /// Selects generation and sort key of what a query means, one `SELECT` a phase: SQLite merges them in order,
    /// each from an index that begins with the phase.
    private func keys(_ query: LedgerQuery, _ phases: [DownloadState.Phase]) -> (sql: String, order: String) {
      let (columns, order) =
        switch query.order {
        case .arrival: ("arrival", "arrival, generation")
        case .rank: ("rank, arrival", "rank, arrival, generation")
        case .latestChange: ("updated_at", "updated_at DESC, generation DESC")
        }
      if query.tag != nil {
        let list = phases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return (
          """
          SELECT generation, \(columns) FROM tag JOIN download USING (generation)
          WHERE tag = ?1 AND phase IN (\(list))
          """, order
        )
      }
      let parts = phases.flatMap { phase in
        if query.order == .rank, phase == .waiting {
          // Those that are due and those that are not are in two indexes; only the first one is in this order.
          return [("download_ready", "IS NULL"), ("download_delayed", "IS NOT NULL")].map { index, isDue in
            """
            SELECT generation, \(columns) FROM download INDEXED BY \(index)
            WHERE phase = 'waiting' AND not_before \(isDue)
            """
          }
        }
        // The active ones are found by their owner.
        let held = phase.isActive ? " AND owner IS NOT NULL" : ""
        return ["SELECT generation, \(columns) FROM download WHERE phase = '\(phase.rawValue)'\(held)"]
      }
      return (parts.joined(separator: " UNION ALL "), order)
    }

    func counts(tag: String?) throws -> [DownloadState.Phase: Int] {
      let statement =
        if tag == nil {
          try prepared(
            """
            SELECT phase, count FROM tally WHERE count > 0 UNION ALL
            SELECT phase, count(*) FROM download WHERE owner IS NOT NULL GROUP BY phase
            """)
        } else {
          try prepared(
            "SELECT phase, count(*) FROM tag JOIN download USING (generation) WHERE tag = ?1 GROUP BY phase")
        }
      if let tag { statement.bind(RecordColumns.key(tag), 1) }
      defer { statement.reset() }
      var counts: [DownloadState.Phase: Int] = [:]
      while try statement.step() {
        if let phase = DownloadState.Phase(rawValue: statement.text(0)) { counts[phase] = Int(statement.int64(1)) }
      }
      return counts
    }
  }
#endif
