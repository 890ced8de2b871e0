#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Selections

    /// Selects rows of `download`; its text is bound once.
    enum Filter {
      case all
      case tag(String)
      case id(String)

      var sql: String {
        switch self {
        case .all: "TRUE"
        case .tag: "generation IN (SELECT generation FROM tag WHERE tag = ?)"
        case .id: "id = ?"
        }
      }

      func bind(to statement: PreparedStatement) {
        switch self {
        case .all: break
        case .tag(let text), .id(let text): statement.bind(RecordColumns.key(text))
        }
      }
    }

    private func filters(_ selection: LedgerSelection) -> [Filter] {
      switch selection {
      case .all: [.all]
      case .tag(let tag): [.tag(tag)]
      case .ids(let ids): ids.map { .id($0.rawValue) }
      }
    }

    // MARK: Moving

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) throws -> LedgerTransitionResult {
      // Waiting records come first: records that begin to wait by this event must not be counted again.
      let effects = (EventEffect.all[event] ?? [:]).filter { !$0.key.isActive }
        .sorted { $0.key == .waiting && $1.key != .waiting }
      var result = LedgerTransitionResult(ids: [], count: 0)
      if case .ids(let ids) = selection {
        for id in ids { try move(id, effects, event, at: now, &result) }
        return result
      }
      forgetLanes()
      for filter in filters(selection) {
        for (source, effect) in effects {
          for part in parts(of: source, filter).map({ ($0.from, $0.where + " AND " + effect.condition) }) {
            try appendIDs(filter, part, to: &result.ids)
            let restarted = event == .restart ? try generations(filter, part) : []
            let count = try move(filter, part, effect, event, at: now)
            for generation in restarted { try rankAnew(generation) }
            moved(count, from: source, to: effect.next)
            result.count += count
          }
        }
      }
      return result
    }

    /// The records of a phase without an owner, as `FROM` and `WHERE` clauses that use an index.
    private func parts(of phase: DownloadState.Phase, _ filter: Filter) -> [(from: String, where: String)] {
      if case .all = filter { return Self.places(of: phase).map { ($0.from, $0.where + " AND owner IS NULL") } }
      // The plus keeps SQLite, which has no statistics, from reading a whole phase for the few records of a tag.
      return [("download", "+phase = '\(phase.rawValue)' AND owner IS NULL AND \(filter.sql)")]
    }

    /// Appends the ids of the records that the event is about to change, up to 10,000 in total.
    private func appendIDs(
      _ filter: Filter, _ part: (from: String, where: String), to ids: inout [DownloadID]
    ) throws {
      let room = 10_000 - ids.count
      guard room > 0 else { return }
      let statement = try prepared("SELECT id FROM \(part.from) WHERE \(part.where) LIMIT ?")
      filter.bind(to: statement)
      statement.bind(Int64(room))
      defer { statement.reset() }
      while try statement.step() { ids.append(DownloadID(statement.text())) }
    }

    /// The generations of the records that the event is about to change.
    private func generations(_ filter: Filter, _ part: (from: String, where: String)) throws -> [Int64] {
      let statement = try prepared("SELECT generation FROM \(part.from) WHERE \(part.where)")
      filter.bind(to: statement)
      defer { statement.reset() }
      var generations: [Int64] = []
      while try statement.step() { generations.append(statement.int64()) }
      return generations
    }

    private func move(
      _ filter: Filter, _ part: (from: String, where: String), _ effect: EventEffect, _ event: Lifecycle.Event,
      at now: Date
    ) throws -> Int {
      let statement = try prepared("UPDATE \(part.from) SET \(changes(effect, event)) WHERE \(part.where)")
      statement.bind(now)
      if isTaken(effect, event) { statement.bind(try opening()) }
      filter.bind(to: statement)
      return try statement.run()
    }

    private func changes(_ effect: EventEffect, _ event: Lifecycle.Event) -> String {
      effect.assignments + ", updated_at = coalesce(?, updated_at)" + (isTaken(effect, event) ? ", opening = ?" : "")
    }

    /// Whether records that an event changes are assigned to this opening. A record that becomes due, or loses its
    /// lease, stays with its opening.
    private func isTaken(_ effect: EventEffect, _ event: Lifecycle.Event) -> Bool {
      effect.next == .waiting && event != .becameDue && event != .leaseLost
    }

    private func move(
      _ id: DownloadID, _ effects: [(key: DownloadState.Phase, value: EventEffect)], _ event: Lifecycle.Event,
      at now: Date, _ result: inout LedgerTransitionResult
    ) throws {
      let find = try prepared("SELECT phase, opening, kind, generation FROM download WHERE id = ? AND owner IS NULL")
      find.bind(RecordColumns.key(id.rawValue))
      let found = try find.first { row in
        (
          phase: DownloadState.Phase(rawValue: row.text()), lane: Lane(opening: row.int64(), kind: row.int64()),
          generation: row.int64()
        )
      }
      guard let found, let effect = effects.first(where: { $0.key == found.phase })?.value else { return }
      if found.phase == .waiting { noteChange(of: found.generation, in: found.lane) }
      guard try apply(effect, event, to: found.generation, at: now) else { return }
      moved(from: found.phase, to: effect.next)
      result.count += 1
      if result.ids.count < 10_000 { result.ids.append(id) }
    }

    /// Applies an event to one record.
    /// - Returns: Whether the event is legal for the record.
    @discardableResult
    private func apply(
      _ effect: EventEffect, _ event: Lifecycle.Event, to generation: Int64, at now: Date?
    ) throws -> Bool {
      let statement = try prepared(
        "UPDATE download SET \(changes(effect, event)) WHERE generation = ? AND \(effect.condition)")
      statement.bind(now)
      if isTaken(effect, event) { statement.bind(try opening()) }
      statement.bind(generation)
      guard try statement.run() == 1 else { return false }
      // The size of the file is no longer known.
      if event == .restart { try rankAnew(generation) }
      if effect.next == .waiting { try noteWaiting(generation) }
      return true
    }

    // MARK: Forgetting

    func remove(_ selection: LedgerSelection, limit: Int) throws -> [DownloadRecord] {
      var records: [DownloadRecord] = []
      for filter in filters(selection) {
        let room = limit - records.count
        guard room > 0 else { break }
        let found = try removable(filter, limit: room)
        for row in found { try delete(row) }
        records += found.map(\.record)
      }
      return records
    }

    /// A row to delete.
    private struct Row {
      var record: DownloadRecord
      var lane: Lane
      /// The phase in which the record is counted; `nil` if that is unknown.
      var phase: DownloadState.Phase?
    }

    private func removable(_ filter: Filter, limit: Int) throws -> [Row] {
      let from = if case .all = filter { "download INDEXED BY download_arrival" } else { "download" }
      return try rows(
        """
        FROM \(from) WHERE \(filter.sql) AND (owner IS NULL OR owner = ?) ORDER BY arrival, generation LIMIT ?
        """
      ) { statement in
        filter.bind(to: statement)
        statement.bind(try opening())
        statement.bind(Int64(limit))
      }
    }

    private func rows(_ condition: String, _ bind: (PreparedStatement) throws -> Void) throws -> [Row] {
      let statement = try prepared("SELECT opening, kind, phase, \(RecordColumns.list) \(condition)")
      try bind(statement)
      defer { statement.reset() }
      var rows: [Row] = []
      while try statement.step() {
        let lane = Lane(opening: statement.int64(), kind: statement.int64())
        let phase = DownloadState.Phase(rawValue: statement.text())
        do {
          rows.append(Row(record: try record(statement), lane: lane, phase: phase))
        } catch let damaged as DamagedRow {
          let isCounted = !["phase", "owner"].contains(damaged.column)
          rows.append(Row(record: damaged.record, lane: lane, phase: isCounted ? phase : nil))
        }
      }
      return rows
    }

    /// Deletes the record with an id, damaged or not.
    func forget(_ id: String) throws {
      for row in try rows("FROM download WHERE id = ?", { $0.bind(id) }) { try delete(row) }
    }

    private func delete(_ row: Row) throws {
      let record = row.record
      for tag in try kind(row.lane.kind)?.candidate.tags ?? [] { try setTag(tag, of: record.generation, to: false) }
      let statement = try prepared(.deleteRow)
      statement.bind(record.generation)
      guard try statement.run() == 1 else { return }
      if let phase = row.phase {
        moved(from: phase, to: nil)
        if phase == .waiting { noteChange(of: record.generation, in: row.lane) }
      } else {
        try recount()
      }
    }

    // MARK: Leases

    func renewLeases(until lease: Date) throws {
      let statement = try prepared(.renew)
      statement.bind(lease)
      statement.bind(try opening())
      try statement.run()
    }

    /// Applies the loss of the lease to all held records for which `isLost` returns `true`.
    func giveBack(at now: Date?, where isLost: (_ owner: Int64, _ lease: Date?) throws -> Bool) throws -> Int {
      var lost: [(generation: Int64, phase: DownloadState.Phase?)] = []
      let held = try prepared(.held)
      do {
        defer { held.reset() }
        while try held.step() {
          let owner = held.int64()
          let lease = held.optionalDate()
          let phase = DownloadState.Phase(rawValue: held.text())
          if try isLost(owner, lease) { lost.append((held.int64(), phase)) }
        }
      }
      for (generation, phase) in lost {
        if let phase, let effect = EventEffect.all[.leaseLost]?[phase] {
          try apply(effect, .leaseLost, to: generation, at: now)
          moved(from: phase, to: effect.next)
        } else {
          // The record is damaged; without an owner it can be removed.
          let statement = try prepared(.letGo)
          statement.bind(generation)
          try statement.run()
        }
      }
      return lost.count
    }
  }
#endif
