#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Changes of many records. A selection is judged once, by its generations: what a change does to a record cannot affect
  // which records are changed.
  extension LedgerTables {
    // MARK: Moving

    /// Records of one phase that an event changes in the same way.
    private struct Group: Hashable {
      var phase: DownloadState.Phase
      /// Whether the artifact is in its place; see ``EventEffect/isPlaced``.
      var isPlaced: Bool
    }

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) throws -> LedgerBulkResult {
      let effects = (EventEffect.all[event] ?? [:]).filter { !$0.key.isActive }
      var result = LedgerBulkResult()
      guard !effects.isEmpty else { return result }
      var text = Condition()
      let matches = text.matching(selection)
      let conditions = effects.map { "(phase = '\($0.rawValue)' AND \($1.condition))" }.sorted()
      let rows = try run(
        """
        SELECT generation, id, phase, \(EventEffect.isPlaced) FROM download
        WHERE \(matches) AND owner IS NULL AND (\(conditions.joined(separator: " OR "))) ORDER BY generation FOR UPDATE
        """, all: text.values)
      var groups: [Group: [Int64]] = [:]
      for row in 0..<rows.count {
        guard let generation = rows.integer(row, 0), let id = rows.original(row, 1),
          let phase = rows.text(row, 2).flatMap(DownloadState.Phase.init(rawValue:))
        else { continue }
        groups[Group(phase: phase, isPlaced: rows.boolean(row, 3) ?? false), default: []].append(generation)
        result.note(DownloadID(id))
      }
      for (group, generations) in groups {
        guard let effect = effects[group.phase] else { continue }
        if effect.needsRecord || (effect.needsPlacedRecord && group.isPlaced) {
          let refused = try applyToRecords(event, effect, generations, at: now)
          result.count -= refused.count
          result.ids.removeAll { refused.contains($0) }
        } else {
          try apply(event, effect, generations, from: group.phase, at: now)
        }
      }
      return result
    }

    /// Whether records that an event changes are assigned to this opening. A record that becomes due, or loses its
    /// lease, stays with its opening.
    private func isTaken(_ event: Lifecycle.Event, _ effect: EventEffect) -> Bool {
      effect.next == .waiting && event != .becameDue && event != .leaseLost
    }

    private func apply(
      _ event: Lifecycle.Event, _ effect: EventEffect, _ generations: [Int64], from phase: DownloadState.Phase,
      at now: Date?
    ) throws {
      for some in generations.chunked {
        _ = try run(
          """
          UPDATE download SET \(effect.assignments), updated_at = coalesce($1, updated_at),
            opening = coalesce($2, opening)
          WHERE generation = ANY($3)
          """, now.map { .real($0.timeIntervalSince1970) } ?? .null,
          isTaken(event, effect) ? .integer(memory.owner.number) : .null, .integers(Array(some)))
        // The size of the file is no longer known.
        if event == .restart { try rankAnew(Array(some)) }
      }
      moved(generations.count, from: phase, to: effect.next)
    }

    /// Applies an event to records one by one.
    /// - Returns: The ids of those for which it is not legal, and of damaged ones.
    private func applyToRecords(
      _ event: Lifecycle.Event, _ effect: EventEffect, _ generations: [Int64], at now: Date?
    ) throws -> Set<DownloadID> {
      var refused: Set<DownloadID> = []
      for some in generations.chunked {
        for found in try locked(Array(some)) {
          var record = found.record
          guard found.damage == nil, record.apply(event) else {
            refused.insert(record.id)
            continue
          }
          if let now { record.updatedAt = now }
          record.rank = try rankingToWrite().rank(record.rankingContext)
          try write(record, over: found.record, isTaken: isTaken(event, effect))
        }
      }
      return refused
    }

    // MARK: Updating and removing

    private func generations(_ selection: LedgerSelection, findsDamaged: Bool = false) throws -> [Int64] {
      var text = Condition()
      let matches = text.matching(selection, findsDamaged: findsDamaged)
      return try numbers("SELECT generation FROM download WHERE \(matches) ORDER BY generation", text.values)
    }

    func update(
      _ selection: LedgerSelection, at now: Date, _ change: (inout DownloadRecord) throws -> Void
    ) throws -> LedgerBulkResult {
      var result = LedgerBulkResult()
      var dependents = NewDependents()
      for some in try generations(selection).chunked {
        for found in try locked(Array(some)) where found.damage == nil {
          guard let record = try update(found.record, at: now, change) else { continue }
          result.note(record.id)
          try note(record, since: found.record, in: &dependents)
        }
      }
      try checkCycles(dependents)
      return result
    }

    func remove(
      _ selection: LedgerSelection, leaving choose: (DownloadRecord) -> LedgerDeletion?
    ) throws -> LedgerRemoval {
      var removal = LedgerRemoval()
      for some in try generations(selection, findsDamaged: true).chunked {
        let found = try locked(Array(some), where: "(owner IS NULL OR owner = \(memory.owner.number))")
        var (chosen, left): ([FoundRecord], [LedgerDeletion]) = ([], [])
        for one in found {
          guard let deletion = choose(one.record) else { continue }
          chosen.append(one)
          if deletion.isEmpty { removal.note(nil) } else { left.append(deletion) }
        }
        try delete(chosen)
        for (location, some) in Dictionary(grouping: left, by: \.location) {
          for number in try keep(some, at: location) { removal.note(number) }
        }
      }
      return removal
    }

    private func keep(_ deletions: [LedgerDeletion], at location: String?) throws -> [Int64] {
      let contents = try deletions.map { StoredText.stored(try $0.content) }
      let rows = try run(
        "INSERT INTO deletion (location, content) SELECT $1, unnest($2::text[]) RETURNING number",
        location.map { .text(StoredText.stored($0)) } ?? .null, .texts(contents))
      return (0..<rows.count).compactMap { rows.integer($0, 0) }
    }

    func deletions(at location: String?, in numbers: ClosedRange<Int64>, limit: Int) throws -> [LedgerDeletion] {
      let rows = try run(
        """
        SELECT number, content FROM deletion
        WHERE number BETWEEN $1 AND $2 AND location IS NOT DISTINCT FROM $3 ORDER BY number LIMIT $4
        """,
        .integer(numbers.lowerBound), .integer(numbers.upperBound),
        location.map { .text(StoredText.stored($0)) } ?? .null, .integer(Int64(limit)))
      return (0..<rows.count).map {
        LedgerDeletion(stored: rows.original($0, 1) ?? "", number: rows.integer($0, 0) ?? 0, location: location)
      }
    }

    func forget(deletions numbers: [Int64]) throws {
      _ = try run("DELETE FROM deletion WHERE number = ANY($1)", .integers(numbers))
    }

    /// Deletes the record with an id, damaged or not.
    func forget(_ id: DownloadID) throws {
      let rows = try run("SELECT \(RecordColumns.list) FROM download WHERE id = $1 FOR UPDATE", .key(id.rawValue))
      try delete(try found(rows))
    }

    private func delete(_ all: [FoundRecord]) throws {
      guard !all.isEmpty else { return }
      let generations = PostgresValue.integers(all.map(\.record.generation))
      _ = try run("DELETE FROM download WHERE generation = ANY($1)", generations)
      _ = try run("DELETE FROM tag WHERE generation = ANY($1)", generations)
      _ = try run("DELETE FROM dependency WHERE generation = ANY($1)", generations)
      for one in all { moved(from: one.record.phase, to: nil) }
      // The phase in which a damaged record was counted is not known.
      if all.contains(where: { ["phase", "owner"].contains($0.damage) }) { try recount() }
    }

    // MARK: Leases

    /// Never earlier than before: a renewal that had to wait may find downloads that were leased meanwhile.
    func renewLeases(until lease: Date) throws {
      _ = try run(
        """
        UPDATE download SET lease = greatest(lease, \(Self.serverTime(of: "$1", clock: "$3")))
        FROM (SELECT generation AS held FROM download WHERE owner = $2 ORDER BY generation FOR UPDATE) AS own
        WHERE generation = own.held AND owner = $2
        """,
        .real(lease.timeIntervalSince1970), .integer(memory.owner.number), memory.clockNow)
    }

    /// A time of this machine's clock as one of the server's clock: the clocks of two machines may be hours apart, and
    /// then a lease of the one must not seem to have expired to the other.
    ///
    /// A small difference is that of the time on the network, and is left out.
    /// - Parameter clock: The parameter with ``StoreMemory/clockNow``.
    static func serverTime(of time: String, clock: String) -> String {
      let skew = "extract(epoch FROM clock_timestamp())::float8 - \(clock)::float8"
      return "(\(time)::float8 + CASE WHEN abs(\(skew)) > 0.5 THEN \(skew) ELSE 0 END)"
    }

    /// Gives back the downloads of owners that have ended, and those whose lease has expired unless their owner is alive.
    /// - Returns: Their number.
    func reclaim(gone: [Int64], alive: [Int64], at now: Date) throws -> Int {
      let count = try giveBack(
        """
        owner = ANY($1) OR owner IS NOT NULL AND coalesce(lease <= \(Self.serverTime(of: "$2", clock: "$4")), TRUE) AND owner <> ALL($3)
        """, [.integers(gone), .real(now.timeIntervalSince1970), .integers(alive), memory.clockNow], at: now)
      // A worker that was only cut off writes its row again.
      _ = try run(
        """
        DELETE FROM opening WHERE (number = ANY($1) OR seen_at < clock_timestamp() - interval '1 day')
          AND number <> ALL($2) AND NOT EXISTS (SELECT 1 FROM download WHERE download.owner = number)
        """, .integers(gone), .integers(alive))
      if !gone.isEmpty {
        for table in Answers.allCases { _ = try run("DELETE FROM \(table) WHERE opening = ANY($1)", .integers(gone)) }
      }
      // What a lease in progress has inserted is not seen here.
      _ = try run(
        """
        DELETE FROM counted WHERE ctid IN (
          SELECT counted.ctid FROM counted WHERE NOT EXISTS (
            SELECT 1 FROM download WHERE download.generation = counted.generation AND owner IS NOT NULL)
          LIMIT 10000 FOR UPDATE SKIP LOCKED)
        """)
      try deleteExpiredShares()
      return count
    }

    /// Gives back the downloads and shares of rates that this owner holds, and forgets the owner.
    /// - Returns: Their number.
    func leave() throws -> Int {
      let own = PostgresValue.integer(memory.owner.number)
      let count = try giveBack("owner = $1", [own], at: nil, "FOR UPDATE")
      // Its number stays in the rows of the downloads that it has added, and is not given to another one.
      _ = try run("DELETE FROM opening WHERE number = $1", own)
      for table in Answers.allCases { _ = try run("DELETE FROM \(table) WHERE opening = $1", own) }
      try deleteShares()
      return count
    }

    /// Applies the loss of the lease to held records.
    ///
    /// - Parameter lock: `FOR UPDATE` to wait for those that others have locked.
    private func giveBack(
      _ condition: String, _ values: [PostgresValue], at now: Date?, _ lock: String = "FOR UPDATE SKIP LOCKED"
    ) throws -> Int {
      let rows = try run(
        """
        SELECT generation, phase, is_outdated FROM download WHERE owner IS NOT NULL AND (\(condition))
        ORDER BY generation \(lock)
        """, all: values)
      var groups: [DownloadState.Phase: [Int64]] = [:]
      var (outdated, damaged): ([(Int64, DownloadState.Phase)], [Int64]) = ([], [])
      for row in 0..<rows.count {
        guard let generation = rows.integer(row, 0) else { continue }
        let phase = rows.text(row, 1).flatMap(DownloadState.Phase.init(rawValue:))
        if let phase, EventEffect.all[.leaseLost]?[phase] != nil {
          if rows.integer(row, 2) == 1 {
            outdated.append((generation, phase))
          } else {
            groups[phase, default: []].append(generation)
          }
        } else {
          damaged.append(generation)
        }
      }
      for (phase, generations) in groups {
        guard let effect = EventEffect.all[.leaseLost]?[phase] else { continue }
        try apply(.leaseLost, effect, generations, from: phase, at: now)
      }
      for (generation, phase) in outdated {
        guard let effect = EventEffect.all[.leaseLost]?[phase] else { continue }
        _ = try applyToRecords(.leaseLost, effect, [generation], at: now)
      }
      // Without an owner a damaged record can be removed.
      let letGo = damaged + outdated.map(\.0)
      if !letGo.isEmpty {
        _ = try run("UPDATE download SET owner = NULL, lease = NULL WHERE generation = ANY($1)", .integers(letGo))
      }
      return rows.count
    }

    /// The openings that may hold downloads, by number.
    func openings() throws -> [(number: Int64, owner: String)] {
      let rows = try run("SELECT number, owner FROM opening")
      return (0..<rows.count).compactMap { row in
        rows.integer(row, 0).flatMap { number in rows.text(row, 1).map { (number, $0) } }
      }
    }
  }
#endif
