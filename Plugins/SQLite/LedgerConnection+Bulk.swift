#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Moving

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) throws -> LedgerBulkResult {
      // Waiting records come first: records that begin to wait by this event must not be counted again.
      let effects = (EventEffect.all[event] ?? [:]).filter { !$0.key.isActive }
        .sorted { $0.key == .waiting && $1.key != .waiting }
      var result = LedgerBulkResult()
      let rows: RowFilter
      switch selection {
      case .ids(let ids):
        for id in ids { try move(id, effects, event, at: now, &result) }
        return result
      case .matching(let filter): rows = RowFilter(filter)
      }
      forgetLanes()
      for (source, effect) in effects where rows.phases.contains(source) {
        for place in rows.places(of: source) {
          let all = Part(
            rows: rows, from: place.from, where: "\(place.where) AND owner IS NULL AND \(effect.condition)")
          try appendIDs(all, to: &result.ids)
          if effect.needsRecord {
            result.count += try applyToRecords(all, event, effect, at: now)
            continue
          }
          // First those whose records are not needed: the others look like them when they have been changed.
          let part = effect.needsPlacedRecord ? all.with("NOT (\(EventEffect.isPlaced))") : all
          let restarted = event == .restart ? try generations(part) : []
          let count = try move(part, effect, event, at: now)
          for generation in restarted { try rankAnew(generation) }
          moved(count, from: source, to: effect.next)
          result.count += count
          guard effect.needsPlacedRecord else { continue }
          result.count += try applyToRecords(all.with(EventEffect.isPlaced), event, effect, at: now)
        }
      }
      return result
    }

    /// Records of one phase that an event changes, as `FROM` and `WHERE` clauses that use an index.
    private struct Part {
      let rows: RowFilter
      let from: String
      let `where`: String

      func with(_ condition: String) -> Part { Part(rows: rows, from: from, where: "\(`where`) AND \(condition)") }
    }

    /// Appends the ids of the records that the event is about to change, up to 10,000 in total.
    private func appendIDs(_ part: Part, to ids: inout [DownloadID]) throws {
      let room = LedgerBulkResult.mostIDs - ids.count
      guard room > 0 else { return }
      let statement = try prepared("\(part.rows.prefix)SELECT id FROM \(part.from) WHERE \(part.where) LIMIT ?")
      try part.rows.bind(to: statement)
      statement.bind(Int64(room))
      defer { statement.reset() }
      while try statement.step() { ids.append(DownloadID(statement.text())) }
    }

    /// The generations of the records that the event is about to change.
    private func generations(_ part: Part) throws -> [Int64] {
      try numbers("\(part.rows.prefix)SELECT generation FROM \(part.from) WHERE \(part.where)", part.rows)
    }

    private func move(_ part: Part, _ effect: EventEffect, _ event: Lifecycle.Event, at now: Date) throws -> Int {
      let statement = try prepared(
        "\(part.rows.prefix)UPDATE \(part.from) SET \(changes(effect, event)) WHERE \(part.where)")
      try part.rows.bind(to: statement)
      statement.bind(now)
      if isTaken(effect, event) { statement.bind(try opening()) }
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
      at now: Date, _ result: inout LedgerBulkResult
    ) throws {
      let find = try prepared(
        "SELECT phase, opening, kind, generation, \(EventEffect.isPlaced) FROM download WHERE id = ? AND owner IS NULL")
      find.bind(RecordColumns.key(id.rawValue))
      let found = try find.first { row in
        (
          phase: DownloadState.Phase(rawValue: row.text()), lane: Lane(opening: row.int64(), kind: row.int64()),
          generation: row.int64(), isPlaced: row.int64() == 1
        )
      }
      guard let found, let effect = effects.first(where: { $0.key == found.phase })?.value else { return }
      if effect.needsRecord || (effect.needsPlacedRecord && found.isPlaced) {
        if try applyToRecord(event, effect, found.generation, at: now) { result.note(id) }
        return
      }
      if found.phase == .waiting { noteChange(of: found.generation, in: found.lane) }
      guard try apply(effect, event, to: found.generation, at: now) else { return }
      moved(from: found.phase, to: effect.next)
      result.note(id)
    }

    /// Applies an event to the records of a part one by one, and returns how many it has changed.
    private func applyToRecords(
      _ part: Part, _ event: Lifecycle.Event, _ effect: EventEffect, at now: Date
    ) throws -> Int {
      try generations(part).reduce(0) { try $0 + (applyToRecord(event, effect, $1, at: now) ? 1 : 0) }
    }

    /// Applies an event to one record that is read for it.
    /// - Returns: Whether the event is legal for the record; `false` for a damaged one.
    private func applyToRecord(
      _ event: Lifecycle.Event, _ effect: EventEffect, _ generation: Int64, at now: Date?
    ) throws -> Bool {
      guard let known = try readable(generation) else { return false }
      var record = known
      guard record.apply(event) else { return false }
      if let now { record.updatedAt = now }
      record.rank = try rankingToWrite().rank(record.rankingContext)
      try write(record, over: known, opening: isTaken(effect, event) ? try opening() : nil)
      return true
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

    // MARK: Leases

    func renewLeases(until lease: Date) throws {
      let statement = try prepared(.renew)
      statement.bind(lease)
      statement.bind(try opening())
      try statement.run()
    }

    /// Applies the loss of the lease to all held records for which `isLost` returns `true`.
    func giveBack(at now: Date?, where isLost: (_ owner: Int64, _ lease: Date?) throws -> Bool) throws -> Int {
      var lost: [(generation: Int64, phase: DownloadState.Phase?, isOutdated: Bool)] = []
      let held = try prepared(.held)
      do {
        defer { held.reset() }
        while try held.step() {
          let owner = held.int64()
          let lease = held.optionalDate()
          let phase = DownloadState.Phase(rawValue: held.text())
          let generation = held.int64()
          let isOutdated = held.value() == .integer(1)
          if try isLost(owner, lease) { lost.append((generation, phase, isOutdated)) }
        }
      }
      for (generation, phase, isOutdated) in lost {
        if let phase, let effect = EventEffect.all[.leaseLost]?[phase] {
          if isOutdated, try applyToRecord(.leaseLost, effect, generation, at: now) {
            try letGo(generation)
            continue
          }
          try apply(effect, .leaseLost, to: generation, at: now)
          moved(from: phase, to: effect.next)
        } else {
          // The record is damaged; without an owner it can be removed.
          try letGo(generation)
        }
      }
      return lost.count
    }

    private func letGo(_ generation: Int64) throws {
      let statement = try prepared(.letGo)
      statement.bind(generation)
      try statement.run()
    }
  }
#endif
