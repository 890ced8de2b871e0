#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Downloads that wait for others. The table `dependency` has a row for each unmet dependency.
  extension LedgerTables {
    /// The downloads that an update has given dependencies.
    struct NewDependents {
      fileprivate var ids: [DownloadID] = []
      fileprivate var areNeeded = false
    }

    /// Notes a download if an update has given it dependencies.
    func note(_ record: DownloadRecord, since known: DownloadRecord, in dependents: inout NewDependents) throws {
      guard !record.waitsFor.isSubset(of: known.waitsFor) else { return }
      dependents.ids.append(record.id)
      if !dependents.areNeeded { dependents.areNeeded = try isNeeded(record.id) }
    }

    /// Checks that downloads do not wait for each other after an update.
    func checkCycles(_ dependents: NewDependents) throws {
      try DependencyCycle.check(dependents.ids, visitsOthers: dependents.areNeeded, waitsFor: waitsFor)
    }

    /// Whether a download has finished; `false` if there is none.
    ///
    /// Its row is locked: if it is just finishing, this waits for the answer; otherwise it finishes after this transaction,
    /// and finds the row of the dependency then.
    func isFinished(_ id: DownloadID) throws -> Bool {
      try holdDependencies()
      let rows = try run("SELECT phase FROM download WHERE id = $1 FOR SHARE", .key(id.rawValue))
      return rows.count > 0 && rows.text(0, 0) == DownloadState.Phase.finished.rawValue
    }

    /// Changes the rows of a download in `dependency`.
    func setDependencies(_ ids: Set<DownloadID>, of generation: Int64, before: Set<DownloadID>) throws {
      guard ids != before else { return }
      let (gone, new) = (before.subtracting(ids), ids.subtracting(before))
      if !gone.isEmpty {
        _ = try run(
          "DELETE FROM dependency WHERE generation = $1 AND needed = ANY($2)", .integer(generation), .keys(gone))
      }
      if !new.isEmpty {
        _ = try run(
          "INSERT INTO dependency SELECT needed, $1 FROM unnest($2::text[]) AS needed ON CONFLICT DO NOTHING",
          .integer(generation), .keys(new))
      }
    }

    /// Releases the downloads that waited for a finished one: those that wait for no other one are ready now, or at
    /// their due time.
    /// - Returns: Whether there were any that wait for no other one.
    func release(by id: DownloadID, at now: Date) throws -> Bool {
      let key = PostgresValue.key(id.rawValue)
      let found = try run(
        """
        SELECT generation, waits_for FROM download
        WHERE generation IN (SELECT generation FROM dependency WHERE needed = $1) AND waits_for IS NOT NULL
        ORDER BY generation FOR UPDATE
        """, key)
      var generations: [Int64] = []
      var waits: [ColumnValue] = []
      for row in 0..<found.count {
        // A damaged record stays as it is.
        guard let generation = found.integer(row, 0), var waitsFor = Self.ids(found.column(row, 1)) else { continue }
        waitsFor.remove(DownloadID(RecordColumns.key(id.rawValue)))
        generations.append(generation)
        waits.append(try IDList(waitsFor).map { try JSONText($0).columnValue } ?? .null)
      }
      if !generations.isEmpty {
        _ = try run(
          """
          UPDATE download SET waits_for = new.waits_for, updated_at = $3
          FROM unnest($1::bigint[], $2::text[]) AS new(generation, waits_for)
          WHERE download.generation = new.generation
          """, .integers(generations), .array(waits), .real(now.timeIntervalSince1970))
      }
      _ = try run("DELETE FROM dependency WHERE needed = $1", key)
      return waits.contains(.null)
    }

    /// Those of some downloads that others wait for.
    func needed(_ ids: [DownloadID]) throws -> [DownloadID] {
      guard !ids.isEmpty else { return [] }
      let keys = ids.map { StoredText.key($0.rawValue) }
      let rows = try run("SELECT DISTINCT needed FROM dependency WHERE needed = ANY($1)", .texts(keys))
      let found = Set((0..<rows.count).compactMap { rows.text($0, 0) })
      return zip(ids, keys).filter { found.contains($1) }.map(\.0)
    }

    /// Whether another download waits for a download.
    func isNeeded(_ id: DownloadID) throws -> Bool {
      try run("SELECT 1 FROM dependency WHERE needed = $1 LIMIT 1", .key(id.rawValue)).count > 0
    }

    /// What a download waits for; nothing if it does not exist or is damaged.
    func waitsFor(_ id: DownloadID) throws -> Set<DownloadID> {
      let rows = try run("SELECT waits_for FROM download WHERE id = $1", .key(id.rawValue))
      return rows.count > 0 ? Self.ids(rows.column(0, 0)) ?? [] : []
    }

    /// The ids in a column; `nil` if there are none, or if it is damaged.
    private static func ids(_ column: ColumnValue) -> Set<DownloadID>? {
      JSONText<IDList>(columnValue: column)?.value.ids
    }

    func isBusy() throws -> Bool {
      let rows = try run(
        """
        SELECT EXISTS (SELECT FROM download WHERE owner IS NOT NULL)
          OR EXISTS (SELECT FROM download WHERE \(Schema.isReady))
          OR EXISTS (SELECT FROM download WHERE \(Schema.isDelayed))
        """)
      return rows.boolean(0, 0) ?? false
    }
  }

  extension PostgresValue {
    /// Ids in their normalized form.
    static func keys(_ ids: some Sequence<DownloadID>) -> PostgresValue {
      .texts(ids.map { StoredText.key($0.rawValue) })
    }
  }
#endif
