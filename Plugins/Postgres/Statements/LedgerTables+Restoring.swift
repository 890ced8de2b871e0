#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Whole records, for another ledger and of another ledger.
  extension LedgerTables {
    /// Puts the records whose ids are new.
    func restore(_ records: [DownloadRecord], at now: Date) throws -> [Bool] {
      // What another transaction adds could wait for one of these.
      try holdDependencies()
      var records = records
      for index in records.indices { records[index].makeStorable() }
      var seen = try known(records.map(\.id))
      let chosen = records.indices.filter { seen.insert(records[$0].id).inserted }
      let new = try prepared(chosen.map { records[$0] })
      let inserted = try insert(new)
      let put = new.filter { inserted.contains($0.generation) }
      try insertTags(of: put)
      for record in put { try setDependencies(record.waitsFor, of: record.generation, before: []) }
      for (phase, group) in Dictionary(grouping: put, by: \.phase) { moved(group.count, from: nil, to: phase) }

      let isNeeded = try needed(put.map(\.id))
      let waitsFor = Dictionary(uniqueKeysWithValues: put.filter { !$0.waitsFor.isEmpty }.map { ($0.id, $0.waitsFor) })
      try DependencyCycle.check(waitsFor.keys.sorted(), visitsOthers: !isNeeded.isEmpty) { id in
        try waitsFor[id] ?? self.waitsFor(id)
      }
      let finished = Set(put.lazy.filter { $0.phase == .finished }.map(\.id))
      for id in isNeeded.filter(finished.contains).sorted() { _ = try release(by: id, at: now) }
      var isPut = [Bool](repeating: false, count: records.count)
      for (index, record) in zip(chosen, new) { isPut[index] = inserted.contains(record.generation) }
      return isPut
    }

    /// The records as they are put into this ledger.
    private func prepared(_ records: [DownloadRecord]) throws -> [DownloadRecord] {
      var finished = Set(records.lazy.filter { $0.phase == .finished }.map(\.id))
      finished.formUnion(try self.finished(records.reduce(into: []) { $0.formUnion($1.waitsFor) }))
      let ranking = try rankingToWrite()
      return zip(records, try generations(for: records)).map { record, generation in
        var record = record.restored(as: generation, finished.contains)
        record.rank = ranking.rank(record.rankingContext)
        return record
      }
    }

    /// Those of some ids that there are, also of damaged records.
    private func known(_ ids: [DownloadID]) throws -> Set<DownloadID> {
      let rows = try run("SELECT id FROM download WHERE id = ANY($1)", .keys(ids))
      return Set((0..<rows.count).compactMap { rows.original($0, 0).map { DownloadID($0) } })
    }

    /// Those of some downloads that have finished, as ``isFinished(_:)``.
    private func finished(_ ids: Set<DownloadID>) throws -> Set<DownloadID> {
      guard !ids.isEmpty else { return [] }
      let rows = try run(
        "SELECT id, phase FROM download WHERE id = ANY($1) ORDER BY generation FOR SHARE", .keys(ids.sorted()))
      return Set(
        (0..<rows.count).compactMap { row in
          rows.text(row, 1) == DownloadState.Phase.finished.rawValue
            ? rows.original(row, 0).map { DownloadID($0) } : nil
        })
    }

    // MARK: Generations

    /// The largest number of generations that are passed over to reach a wanted one, which takes some seconds.
    private static let mostPassedOver: Int64 = 10_000_000

    /// Takes generations for records: their own, as far as they have not been given.
    ///
    /// The numbers come from the sequence one by one: it cannot be set while other programs use it.
    private func generations(for records: [DownloadRecord]) throws -> [Int64] {
      guard !records.isEmpty else { return [] }
      let first = try numbers("SELECT nextval('generation')", [])[0]
      var last = first - 1
      let wanted = records.map { record in
        last = record.generation(after: last, most: first + Self.mostPassedOver)
        return last
      }
      guard last > first else { return wanted }
      let rows = try run(
        "SELECT min(n), max(n) FROM (SELECT nextval('generation') AS n FROM generate_series(1, $1)) AS taken",
        .integer(last - first))
      if rows.integer(0, 0) == first + 1, rows.integer(0, 1) == last { return wanted }
      // Another program has taken some of them.
      return try numbers("SELECT nextval('generation') FROM generate_series(1, $1)", [.integer(Int64(records.count))])
    }

    // MARK: Reading

    /// The readable records whose generation is larger than a given one, in the order of their generations.
    func records(after generation: Int64, limit: Int) throws -> [DownloadRecord] {
      var records: [DownloadRecord] = []
      var last = generation
      // Damaged records are left out, and the page is filled with the records that follow.
      while records.count < limit {
        let room = limit - records.count
        let rows = try run(
          "SELECT \(RecordColumns.list) FROM download WHERE generation > $1 ORDER BY generation LIMIT $2",
          .integer(last), .integer(Int64(room)))
        let found = try found(rows)
        records += found.compactMap { $0.damage == nil ? $0.record : nil }
        guard found.count == room, let end = found.last?.record.generation else { break }
        last = end
      }
      return records
    }
  }

  extension DownloadRecord {
    /// Changes the record to the form that is read back.
    fileprivate mutating func makeStorable() {
      request.id = DownloadID(RecordColumns.key(id.rawValue))
      request.makeStorable()
      added?.makeStorable()
    }
  }
#endif
