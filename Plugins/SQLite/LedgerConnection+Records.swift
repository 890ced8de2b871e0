#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Reading

    /// The record in the present row of a statement that selects ``RecordColumns/list``.
    func record(_ row: PreparedStatement) throws -> DownloadRecord {
      var record = RecordColumns.blank
      var damaged: String?
      for column in RecordColumns.all {
        let value = row.value()
        if case .null? = value {
          if !column.isOptional { damaged = damaged ?? column.name }
        } else if !(value.map { column.read($0, &record) } ?? false) {
          damaged = damaged ?? column.name
        }
      }
      if let kind = try kind(row.int64()) { kind.write(to: &record) } else { damaged = damaged ?? "kind" }
      switch row.value() {
      case .null: if record.phase.isActive { damaged = damaged ?? "owner" }
      case .integer(let opening): record.owner = try owner(opening)
      default: damaged = damaged ?? "owner"
      }
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
      var request = addition.request
      let id = RecordColumns.key(request.id.rawValue)
      request.id = DownloadID(id)
      if !request.tags.isEmpty { request.tags = Set(request.tags.map(RecordColumns.key)) }
      // New to most ledgers, and then not looked for twice.
      if let new = try insert(request, addition, at: now) { return new }

      let known: DownloadRecord?
      do { known = try record(request.id) } catch is DamagedRow { known = nil }
      if let known {
        let isElsewhere = known.location.flatMap { old in addition.location.map { $0 != old } } ?? false
        let isLost = known.phase == .finished && addition.lost != nil && known.steps.artifact == addition.lost
        if isElsewhere, known.phase.isActive {
          throw DownloadError(
            .inUse, "“\(id.prefix(300))” is being downloaded to \(known.location ?? ""): wait until it has ended",
            stage: LedgerFault.stage)
        }
        if !isElsewhere, !isLost { return try update(known, request, addition, at: now) }
      }
      try forget(id)
      guard let new = try insert(request, addition, at: now) else {
        throw LedgerFault.error("the ledger's index of ids is damaged: run “REINDEX” on it with the sqlite3 tool")
      }
      return new
    }

    /// Adds a download, unless its id is known.
    private func insert(
      _ request: DownloadRequest, _ addition: LedgerAddition, at now: Date
    ) throws -> LedgerAddOutcome? {
      let record = DownloadRecord(
        request: request, generation: try nextGeneration(), arrival: addition.arrival, rank: addition.rank,
        location: addition.location, createdAt: now)
      let lane = Lane(opening: try opening(), kind: try number(of: Kind(record)))
      let insert = try prepared(.insert)
      for column in RecordColumns.new { insert.bind(try column.value(record)) }
      insert.bind(lane.kind)
      insert.bind(lane.opening)
      guard try insert.run() == 1 else {
        returnGeneration()
        return nil
      }
      for tag in request.tags { try setTag(tag, of: record.generation, to: true) }
      moved(from: nil, to: .waiting)
      noteWaiting(record, in: lane)
      return LedgerAddOutcome(isNew: true, record: record)
    }

    private func update(
      _ known: DownloadRecord, _ request: DownloadRequest, _ addition: LedgerAddition, at now: Date
    ) throws -> LedgerAddOutcome {
      var record = known
      // Another link: what the old one was short of says nothing of it.
      if record.request.url != request.url { record.awaited = nil }
      record.request = request
      record.rank = addition.rank
      record.location = known.location ?? addition.location
      record.updatedAt = now
      record.apply(.addedAgain)
      if known.phase == .waiting, let lane = try lane(of: known.generation) { noteChange(in: lane) }
      let lane = Lane(opening: try opening(), kind: try number(of: Kind(record)))
      let update = try prepared(.rewrite)
      for column in RecordColumns.changing { update.bind(try column.value(record)) }
      update.bind(lane.kind)
      update.bind(lane.opening)
      update.bind(record.generation)
      try update.run()
      try setTags(record.request.tags, of: record.generation, before: known.request.tags)
      if record.phase != known.phase { moved(from: known.phase, to: record.phase) }
      if record.phase == .waiting, record.notBefore == nil { noteWaiting(record, in: lane) }
      return LedgerAddOutcome(isNew: false, record: record)
    }

    private func noteWaiting(_ record: DownloadRecord, in lane: Lane) {
      noteWaiting(
        WaitingKey(rank: record.rank.value, arrival: record.arrival, generation: record.generation), in: lane)
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
      var exchange = LedgerExchange()
      exchange.saved.reserveCapacity(saves.count)
      for save in saves { exchange.saved.append(try self.save(save.record, save.fields, at: now)) }
      if let request { exchange.leased = try lease(request) }
      return exchange
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) throws -> Bool {
      let change = try KindChange(record, fields, self)
      if change == nil, !fields.isDisjoint(with: [.request, .link]) { return false }
      let text = SaveText(fields, keepsLease: record.phase.isActive)
      let statement = try prepared(text)
      for column in text.columns { statement.bind(try column.value(record)) }
      statement.bind(now)
      if let change { statement.bind(change.number) }
      statement.bind(record.generation)
      statement.bind(RecordColumns.key(record.id.rawValue))
      statement.bind(try opening())
      guard try statement.run() == 1 else { return false }
      if let change { try setTags(change.tags, of: record.generation, before: change.tagsBefore) }
      if fields.contains(.state) {
        // What is held was active.
        moved(from: .transferring, to: record.phase)
        if record.phase == .waiting, record.notBefore == nil { try noteWaiting(record.generation) }
      }
      return true
    }

    /// What a save of the request, or of its link, makes of a download's kind.
    private struct KindChange {
      var number: Int64
      var tags: Set<String>
      var tagsBefore: Set<String>

      /// `nil` when the save does not write it, or the record is gone.
      init?(_ record: DownloadRecord, _ fields: RecordFields, _ connection: LedgerConnection) throws {
        guard !fields.isDisjoint(with: [.request, .link]), let lane = try connection.lane(of: record.generation),
          var kind = try connection.kind(lane.kind)
        else { return nil }
        tagsBefore = kind.candidate.tags
        if fields.contains(.request) {
          kind.candidate = record.candidate
          kind.candidate.tags = Set(record.request.tags.map(RecordColumns.key))
        }
        kind.candidate.host = record.request.host
        tags = kind.candidate.tags
        number = try connection.number(of: kind)
      }
    }

    /// Notes that a download waits now, in the lane that its row names.
    func noteWaiting(_ generation: Int64) throws {
      let row = try prepared(.place)
      row.bind(generation)
      defer { row.reset() }
      if try row.step() { noteWaiting(row) }
    }
  }
#endif
