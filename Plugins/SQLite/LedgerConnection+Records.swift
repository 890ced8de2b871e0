#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Reading

    /// The record in the current row of a statement that selects ``RecordColumns/list``.
    func record(_ row: PreparedStatement) throws -> DownloadRecord { try record(row, .all) }

    /// The part of a record in the current row of a statement that selects the columns of a list, kind and owner.
    func record(_ row: PreparedStatement, _ list: ColumnList) throws -> DownloadRecord {
      var record = RecordColumns.blank
      var damaged: String?
      var required = 0
      // Most columns of most rows are NULL: those are passed over without a look at the column, which is an object.
      let start = row.column
      while let place = row.passNulls(before: start + list.columns.count) {
        let column = list.columns[place - start]
        if !column.isOptional { required += 1 }
        if !(row.value().map { column.read($0, &record) } ?? false) { damaged = damaged ?? column.name }
      }
      if required < list.required {
        damaged = list.columns.indices.first { !list.columns[$0].isOptional && row.isNull(start + $0) }.map {
          list.columns[$0].name
        }
      }
      if let kind = try kind(row.int64()) { kind.write(to: &record) } else { damaged = damaged ?? "kind" }
      switch row.value() {
      case .null: if record.phase.isActive { damaged = damaged ?? "owner" }
      case .integer(let opening): record.owner = try owner(opening)
      default: damaged = damaged ?? "owner"
      }
      // The id of the added request is that of the record, even if the JSON differs.
      if record.added != nil { record.added?.id = record.request.id }
      if let damaged { throw DamagedRow(record: record, column: damaged) }
      return record
    }

    func record(_ id: DownloadID) throws -> DownloadRecord? {
      let statement = try prepared(.record)
      statement.bind(RecordColumns.key(id.rawValue))
      return try statement.first(record)
    }

    func nextDue(after now: Date) throws -> Date? {
      let statement = try prepared(.nextDue)
      statement.bind(now)
      guard let due = try statement.first({ $0.optionalDate() }) ?? nil, due <= now.furthestDue else { return nil }
      return due
    }

    // MARK: Adding

    func add(_ addition: LedgerAddition, at now: Date) throws -> LedgerAddOutcome {
      var addition = addition
      let id = RecordColumns.key(addition.request.id.rawValue)
      addition.request.id = DownloadID(id)
      addition.request.makeStorable()
      // Most additions are new: inserting them at once saves a look-up.
      if let new = try insert(addition, at: now) { return new }

      let known: DownloadRecord?
      do { known = try record(addition.request.id) } catch is DamagedRow { known = nil }
      if let known {
        let isElsewhere = known.location.flatMap { old in addition.location.map { $0 != old } } ?? false
        let isLost = known.phase == .finished && addition.lost != nil && known.steps.artifact == addition.lost
        if isElsewhere, known.phase.isActive {
          throw DownloadError(
            .inUse, "“\(id.prefix(300))” is being downloaded to \(known.location ?? ""): wait until it has ended",
            stage: LedgerFault.stage)
        }
        if !isElsewhere, !isLost { return try addAgain(known, addition, at: now) }
      }
      try forget(id)
      guard let new = try insert(addition, at: now) else {
        throw LedgerFault.error("the ledger's index of ids is damaged: run “REINDEX” on it with the sqlite3 tool")
      }
      return new
    }

    /// Adds a download; returns `nil` if its id exists.
    private func insert(_ addition: LedgerAddition, at now: Date) throws -> LedgerAddOutcome? {
      var record = DownloadRecord(
        request: addition.request, generation: try nextGeneration(), arrival: addition.arrival, rank: Rank(),
        location: addition.location, createdAt: now)
      let kind = Kind(record)
      record.rank = try rankingToWrite().rank(record.rankingContext(host: kind.candidate.host))
      try record.follow(since: [], isFinished)
      let lane = Lane(opening: try opening(), kind: try number(of: kind))
      let insert = try prepared(.insert)
      for column in RecordColumns.new { insert.bind(try column.value(record)) }
      insert.bind(lane.kind)
      insert.bind(lane.opening)
      guard try insert.run() == 1 else {
        returnGeneration()
        return nil
      }
      for tag in record.request.tags { try setTag(tag, of: record.generation, to: true) }
      try setDependencies(record.waitsFor, of: record.generation, before: [])
      moved(from: nil, to: .waiting)
      if record.isReady { noteWaiting(record, in: lane) }
      if addition.isPaused {
        let waiting = record
        record.apply(.pause)
        try write(record, over: waiting, opening: lane.opening)
      }
      return LedgerAddOutcome(isNew: true, record: record)
    }

    private func addAgain(
      _ known: DownloadRecord, _ addition: LedgerAddition, at now: Date
    ) throws -> LedgerAddOutcome {
      var record = known
      let opening = try opening()
      if try record.addAgain(addition, at: now, ranking: try rankingToWrite(), isFinished) {
        try write(record, over: known, opening: opening)
      } else if let lane = try lane(of: known.generation), lane.opening != opening {
        // The download is assigned to this opening even if the addition changes nothing.
        let statement = try prepared(.setOpening)
        statement.bind(opening)
        statement.bind(known.generation)
        try statement.run()
        if known.phase == .waiting { noteChange(of: known, in: lane) }
        if known.isReady { noteWaiting(known, in: Lane(opening: opening, kind: lane.kind)) }
      }
      return LedgerAddOutcome(isNew: known.phase == .finished && record.phase != .finished, record: record)
    }

    /// Changes a record, whether or not an owner holds it.
    func update(
      _ id: DownloadID, at now: Date, _ change: (inout DownloadRecord) throws -> Void
    ) throws -> DownloadRecord? {
      guard let known = try record(id) else { return nil }
      guard let record = try update(known, at: now, change) else { return known }
      var dependents = NewDependents()
      try note(record, since: known, in: &dependents)
      try checkCycles(dependents)
      return record
    }

    /// Changes a record without looking for cycles of dependencies.
    /// - Returns: The record after the change; `nil` if nothing has changed.
    func update(
      _ known: DownloadRecord, at now: Date, _ change: (inout DownloadRecord) throws -> Void
    ) throws -> DownloadRecord? {
      var record = known
      guard
        try record.update(by: owner, at: now, ranking: try rankingToWrite(), isFinished: isFinished, change)
      else { return nil }
      record.request.makeStorable()
      record.added?.makeStorable()
      try write(record, over: known, opening: record.phase == known.phase ? nil : try opening())
      return record
    }

    /// Writes the changeable columns of an existing record.
    ///
    /// - Parameter opening: The opening to assign the record to; its present opening if `nil`.
    func write(_ record: DownloadRecord, over known: DownloadRecord, opening: Int64?) throws {
      guard let old = try lane(of: known.generation) else { return }
      if known.phase == .waiting { noteChange(of: known, in: old) }
      let lane = Lane(opening: opening ?? old.opening, kind: try number(of: Kind(record)))
      let update = try prepared(.rewrite)
      for column in RecordColumns.changing { update.bind(try column.value(record)) }
      update.bind(lane.kind)
      update.bind(lane.opening)
      update.bind(record.generation)
      try update.run()
      try setTags(record.request.tags, of: record.generation, before: known.request.tags)
      try setDependencies(record.waitsFor, of: record.generation, before: known.waitsFor)
      if record.phase != known.phase { moved(from: known.phase, to: record.phase) }
      if record.isReady { noteWaiting(record, in: lane) }
    }

    func noteWaiting(_ record: DownloadRecord, in lane: Lane) {
      let key = WaitingKey(rank: record.rank.value, arrival: record.arrival, generation: record.generation)
      noteWaiting(key, in: lane, id: record.id)
    }

    private func noteChange(of record: DownloadRecord, in lane: Lane) {
      noteChange(of: record.generation, in: lane)
    }

    /// The record with a generation; `nil` if it does not exist or is damaged.
    func readable(_ generation: Int64) throws -> DownloadRecord? {
      let row = try prepared(.recordOfGeneration)
      row.bind(generation)
      do { return try row.first(record) } catch is DamagedRow { return nil }
    }

    func lane(of generation: Int64) throws -> Lane? {
      let row = try prepared(.place)
      row.bind(generation)
      return try row.first { Lane(opening: $0.int64(), kind: $0.int64()) }
    }

    // MARK: Tags

    private func setTags(_ tags: Set<String>, of generation: Int64, before: Set<String>) throws {
      guard tags != before else { return }
      for tag in before.subtracting(tags) { try setTag(tag, of: generation, to: false) }
      for tag in tags.subtracting(before) { try setTag(tag, of: generation, to: true) }
    }

    func setTag(_ tag: String, of generation: Int64, to isSet: Bool) throws {
      let statement = try prepared(isSet ? .insertTag : .deleteTag)
      statement.bind(RecordColumns.key(tag))
      statement.bind(generation)
      try statement.run()
    }

    // MARK: Saving

    func exchange(_ saves: [LedgerSave], _ request: LeaseRequest?, at now: Date) throws -> LedgerExchange {
      hasReleased = false
      reopened = []
      var exchange = LedgerExchange()
      exchange.saved.reserveCapacity(saves.count)
      for save in saves { exchange.saved.append(try self.save(save.record, save.fields, at: now)) }
      exchange.mayHaveReleasedDelayed = hasReleased
      exchange.reopened = reopened
      if let request { exchange.leased = try lease(request) }
      return exchange
    }

    /// Keeps what gives the answer of an exchange again, or of another change.
    func keep(_ answer: String, _ number: Int64, in text: StatementText = .keepAnswer) throws {
      let statement = try prepared(text)
      statement.bind(number)
      statement.bind(answer)
      statement.bind(try opening())
      try statement.run()
    }

    /// What is kept of the answer of a change that has taken effect.
    func lastChange(_ number: Int64) throws -> String? {
      let own = try opening()
      let statement = try prepared(.lastChange)
      statement.bind(own)
      statement.bind(number)
      return try statement.first { $0.text() }
    }

    /// The answer of an exchange that has taken effect.
    func answer(_ number: Int64, _ saves: [LedgerSave]) throws -> LedgerExchange? {
      let own = try opening()
      let statement = try prepared(.answer)
      statement.bind(own)
      statement.bind(number)
      guard let kept = try statement.first({ $0.text() }) else { return nil }
      return try LedgerExchange(kept: kept, for: saves) { generations in
        try generations.compactMap { try readable($0) }.filter { $0.owner == owner }
      }
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) throws -> Bool {
      guard fields.contains(.link) else { return try save(record, fields, kind: nil, at: now) }
      guard let linked = try linked(record) else { return false }
      return try save(linked.record, fields, kind: linked.kind, at: now)
    }

    private func save(_ record: DownloadRecord, _ fields: RecordFields, kind: Int64?, at now: Date) throws -> Bool {
      let mayLearnSize = fields.contains(.checkpoint) && record.phase != .finished
      let total = mayLearnSize ? try total(of: record.generation) : record.checkpoint.total
      let text = SaveText(fields, keepsLease: record.phase.isActive)
      let statement = try prepared(text)
      for column in text.columns { statement.bind(try column.value(record)) }
      statement.bind(now)
      if let kind { statement.bind(kind) }
      statement.bind(record.generation)
      statement.bind(RecordColumns.key(record.id.rawValue))
      statement.bind(try opening())
      guard try statement.run() == 1 else { return false }
      if total != record.checkpoint.total { try rankAnew(record.generation) }
      if fields.contains(.state) {
        // A held record was active.
        moved(from: .transferring, to: record.phase)
        if !record.phase.isActive, try reopen(record) { return true }
        if record.phase == .waiting, record.notBefore == nil { try noteWaiting(record.generation) }
        if record.phase == .finished, try release(by: record.id, at: now) { hasReleased = true }
      }
      return true
    }

    /// Judges a saved outcome by the request of the row, which may differ from that of the run; see
    /// `DownloadRecord.reopen(afterWorkFor:_:)`.
    /// - Returns: Whether the row has been written again, and the download has not finished.
    private func reopen(_ saved: DownloadRecord) throws -> Bool {
      let work = try prepared(.work)
      work.bind(saved.generation)
      let isSame = try work.first { row in
        try RecordColumns.work.allSatisfy { try $0.value(saved) == row.value() ?? .null }
      }
      if isSame ?? true { return false }
      // A damaged record does not affect the others of the exchange.
      guard let known = try readable(saved.generation) else { return false }
      var record = known
      guard try record.reopen(afterWorkFor: saved.request, try rankingToWrite()) else { return false }
      try write(record, over: known, opening: nil)
      if record.phase != known.phase { reopened.insert(record.id) }
      return record.phase != .finished
    }

    /// The stored size of a file.
    private func total(of generation: Int64) throws -> ByteCount {
      let row = try prepared(.total)
      row.bind(generation)
      let bytes: Int64?? = try row.first { if case .integer(let bytes)? = $0.value() { bytes } else { nil } }
      return ByteCount(bytes ?? nil)
    }

    /// A record with the link to save, and with the rank and kind that follow from it; `nil` if the record does not
    /// exist.
    private func linked(_ record: DownloadRecord) throws -> (record: DownloadRecord, kind: Int64)? {
      let row = try prepared(.recordOfGeneration)
      row.bind(record.generation)
      guard var known = try row.first(self.record) else { return nil }
      known.setLink(of: record, ranking: try rankingToWrite())
      known.request.makeStorable()
      var record = record
      record.request = known.request
      record.added = known.added
      record.rank = known.rank
      return (record, try number(of: Kind(location: known.location, candidate: known.candidate)))
    }

    /// Adds a download to the lists of lanes if it waits and is due, with the lane and key from its row.
    func noteWaiting(_ generation: Int64) throws {
      let row = try prepared(.readyPlace)
      row.bind(generation)
      defer { row.reset() }
      if try row.step() { noteWaiting(row) }
    }
  }

  extension DownloadRecord {
    /// Whether the download waits, but neither for a time nor for another download.
    var isReady: Bool { isQueued && notBefore == nil }
  }
#endif
