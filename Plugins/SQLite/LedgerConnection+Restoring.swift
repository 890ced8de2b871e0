#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Whole records, for another ledger and of another ledger.
  extension LedgerConnection {
    /// Puts the records whose ids are new.
    func restore(_ records: [DownloadRecord], at now: Date) throws -> [Bool] {
      var ids: Set<DownloadID> = []
      let isNew = try records.map { try !exists($0.id) && ids.insert($0.id).inserted }
      let chosen = zip(records, isNew).filter(\.1).map(\.0)
      let finished = Set(chosen.lazy.filter { $0.phase == .finished }.map(\.id))
      let isNeeded = try ids.filter(isNeeded)
      var waitsFor: [DownloadID: Set<DownloadID>] = [:]
      for record in chosen {
        let put = try restore(record) { try finished.contains($0) || isFinished($0) }
        if !put.waitsFor.isEmpty { waitsFor[put.id] = put.waitsFor }
      }
      try DependencyCycle.check(waitsFor.keys.sorted(), visitsOthers: !isNeeded.isEmpty) { id in
        try waitsFor[id] ?? self.waitsFor(id)
      }
      for id in finished.intersection(isNeeded).sorted() { _ = try release(by: id, at: now) }
      return isNew
    }

    private func exists(_ id: DownloadID) throws -> Bool {
      let find = try prepared(.phaseOfID)
      find.bind(RecordColumns.key(id.rawValue))
      return try find.first { _ in true } ?? false
    }

    /// Puts a record whose id is new.
    private func restore(
      _ given: DownloadRecord, _ isFinished: (DownloadID) throws -> Bool
    ) throws -> DownloadRecord {
      var record = try given.restored(as: try nextGeneration { given.generation(after: $0) }, isFinished)
      record.request.makeStorable()
      record.added?.makeStorable()
      let kind = Kind(record)
      record.rank = try rankingToWrite().rank(record.rankingContext(host: kind.candidate.host))
      let lane = Lane(opening: try opening(), kind: try number(of: kind))
      let insert = try prepared(.restore)
      for column in RecordColumns.all { insert.bind(try column.value(record)) }
      insert.bind(lane.kind)
      insert.bind(lane.opening)
      try insert.run()
      for tag in record.request.tags { try setTag(tag, of: record.generation, to: true) }
      try setDependencies(record.waitsFor, of: record.generation, before: [])
      moved(from: nil, to: record.phase)
      if record.isReady { noteWaiting(record, in: lane) }
      return record
    }

    /// The readable records whose generation is larger than a given one, in the order of their generations.
    func records(after generation: Int64, limit: Int) throws -> [DownloadRecord] {
      let statement = try prepared(
        "SELECT \(RecordColumns.list) FROM download NOT INDEXED WHERE generation > ? ORDER BY generation")
      statement.bind(generation)
      defer { statement.reset() }
      var records: [DownloadRecord] = []
      while records.count < limit, try statement.step() {
        do { records.append(try record(statement)) } catch is DamagedRow {}
      }
      return records
    }
  }
#endif
