#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Downloads that wait for others. The table `dependency` has a row for each unmet dependency.
  extension LedgerConnection {
    /// Adds downloads, and checks that they do not wait for each other afterwards.
    func add(_ additions: [LedgerAddition], at now: Date) throws -> [LedgerAddOutcome] {
      let ids = Set(additions.lazy.filter { !$0.request.after.isEmpty }.map(\.request.id))
      let before = try ids.map { (id: $0, isNeeded: try isNeeded($0), waitsFor: try waitsFor($0)) }
      let outcomes = try additions.map { try add($0, at: now) }
      guard !before.isEmpty else { return outcomes }
      let after = Dictionary(outcomes.map { ($0.record.id, $0.record.waitsFor) }) { $1 }
      let changed = before.filter { id, _, waitsFor in after[id]?.isSubset(of: waitsFor) == false }.map(\.id)
      try DependencyCycle.check(changed.sorted(), visitsOthers: before.contains(where: \.isNeeded)) { id in
        try after[id] ?? waitsFor(id)
      }
      return outcomes
    }

    /// The downloads that an update has given dependencies.
    struct NewDependents {
      fileprivate var ids: [DownloadID] = []
      fileprivate var areNeeded = false
    }

    /// Notes a download if an update has given it dependencies.
    func note(
      _ record: DownloadRecord, since known: DownloadRecord, in dependents: inout NewDependents
    ) throws {
      guard !record.waitsFor.isSubset(of: known.waitsFor) else { return }
      dependents.ids.append(record.id)
      if !dependents.areNeeded { dependents.areNeeded = try isNeeded(record.id) }
    }

    /// Checks that downloads do not wait for each other after an update.
    func checkCycles(_ dependents: NewDependents) throws {
      try DependencyCycle.check(dependents.ids, visitsOthers: dependents.areNeeded, waitsFor: waitsFor)
    }

    /// Whether a download has finished; `false` if there is none.
    func isFinished(_ id: DownloadID) throws -> Bool {
      let find = try prepared(.phaseOfID)
      find.bind(RecordColumns.key(id.rawValue))
      return try find.first { DownloadState.Phase(rawValue: $0.text()) } == .finished
    }

    /// Changes the rows of a download in `dependency`.
    func setDependencies(_ ids: Set<DownloadID>, of generation: Int64, before: Set<DownloadID>) throws {
      guard ids != before else { return }
      func write(_ text: StatementText, _ ids: Set<DownloadID>) throws {
        for id in ids {
          let statement = try prepared(text)
          statement.bind(RecordColumns.key(id.rawValue))
          statement.bind(generation)
          try statement.run()
        }
      }
      try write(.deleteDependency, before.subtracting(ids))
      try write(.insertDependency, ids.subtracting(before))
    }

    /// Releases the downloads that waited for a finished one: those that wait for no other one are ready now, or at
    /// their due time.
    /// - Returns: Whether there were any that wait for no other one.
    func release(by id: DownloadID, at now: Date) throws -> Bool {
      var hasReleased = false
      let key = RecordColumns.key(id.rawValue)
      let find = try prepared(.dependents)
      find.bind(key)
      var generations: [Int64] = []
      do {
        defer { find.reset() }
        while try find.step() { generations.append(find.int64()) }
      }
      for generation in generations {
        let row = try prepared(.waitsFor)
        row.bind(generation)
        // A damaged record stays as it is. The row of a record that was deleted although damaged is left over.
        if var waitsFor = try row.first(Self.ids) ?? nil {
          waitsFor.remove(id)
          let update = try prepared(.setWaitsFor)
          update.bind(try IDList(waitsFor).map { try JSONText($0).columnValue } ?? .null)
          update.bind(now)
          update.bind(generation)
          try update.run()
          if waitsFor.isEmpty {
            hasReleased = true
            try noteWaiting(generation)
          }
        }
        try setDependencies([], of: generation, before: [id])
      }
      return hasReleased
    }

    /// Whether another download waits for a download.
    func isNeeded(_ id: DownloadID) throws -> Bool {
      let find = try prepared(.isNeeded)
      find.bind(RecordColumns.key(id.rawValue))
      return try find.first { _ in true } ?? false
    }

    /// What a download waits for; nothing if it does not exist or is damaged.
    func waitsFor(_ id: DownloadID) throws -> Set<DownloadID> {
      let row = try prepared(.waitsForOfID)
      row.bind(RecordColumns.key(id.rawValue))
      return try row.first(Self.ids).flatMap { $0 } ?? []
    }

    /// The ids in a column; `nil` if there are none, or if it is damaged.
    private static func ids(_ row: PreparedStatement) -> Set<DownloadID>? {
      row.value().flatMap { JSONText<IDList>(columnValue: $0) }?.value.ids
    }

    func isBusy() throws -> Bool { try prepared(.isBusy).first { $0.int64() != 0 } ?? false }
  }
#endif
