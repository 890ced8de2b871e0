#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Adding

    func add(_ addition: LedgerAddition, at now: Date) throws -> LedgerAddOutcome {
      var request = addition.request
      let id = RecordColumns.key(request.id.rawValue)
      request.id = DownloadID(id)
      if !request.tags.isEmpty { request.tags = Set(request.tags.map(RecordColumns.key)) }

      let insert = try prepared(.insert)
      insert.bind(id, 1)
      insert.bind(blob: addition.rank.value, 2)
      insert.bind(addition.arrival, 3)
      insert.bind(now, 4)
      try RecordColumns.bind(request, from: 5, to: insert)
      if try insert.run() == 1 {
        let record = DownloadRecord(
          request: request, generation: db.lastRow, arrival: addition.arrival, rank: addition.rank, createdAt: now)
        for tag in request.tags { try setTag(tag, of: record.generation, to: true) }
        moved(from: nil, to: .waiting)
        return LedgerAddOutcome(isNew: true, record: record)
      }

      guard var record = try record(request.id) else {
        throw LedgerFault.error("the ledger's index of ids is damaged: run “REINDEX” on it with the sqlite3 tool")
      }
      let old = record
      if record.awaited != nil, record.request.url != request.url {
        // Another link: what the old one was short of says nothing of it.
        record.awaited = nil
        try run(.clearAwaited, record.generation)
      }
      record.request = request
      record.rank = addition.rank
      record.updatedAt = now
      try writeRequest(record, tagsBefore: old.request.tags)
      if old.phase == .failed || old.phase == .cancelled {
        record.apply(.addedAgain)
        try run(.waitAgain, record.generation)
        if old.phase == .cancelled { try run(.clearProgress, record.generation) }
        moved(from: old.phase, to: .waiting)
      }
      return LedgerAddOutcome(isNew: false, record: record)
    }

    /// Writes request, rank and time of change.
    private func writeRequest(_ record: DownloadRecord, tagsBefore: Set<String>) throws {
      let update = try prepared(.updateRequest)
      update.bind(record.generation, 1)
      update.bind(blob: record.rank.value, 2)
      update.bind(record.updatedAt, 3)
      try RecordColumns.bind(record.request, from: 5, to: update)
      try update.run()
      let tags = record.request.tags
      for tag in tagsBefore.subtracting(tags) { try setTag(tag, of: record.generation, to: false) }
      for tag in tags.subtracting(tagsBefore) { try setTag(tag, of: record.generation, to: true) }
    }

    private func setTag(_ tag: String, of generation: Int64, to isSet: Bool) throws {
      let statement = try prepared(isSet ? .insertTag : .deleteTag)
      statement.bind(RecordColumns.key(tag), 1)
      statement.bind(generation, 2)
      try statement.run()
    }

    private func run(_ text: StatementText, _ generation: Int64) throws {
      let statement = try prepared(text)
      statement.bind(generation, 1)
      try statement.run()
    }

    // MARK: Reading

    func record(_ id: DownloadID) throws -> DownloadRecord? {
      let statement = try prepared(.record)
      statement.bind(RecordColumns.key(id.rawValue), 1)
      defer { statement.reset() }
      return try statement.step() ? try RecordColumns.record(statement) : nil
    }

    func nextDue(after now: Date) throws -> Date? {
      let statement = try prepared(.nextDue)
      statement.bind(now, 1)
      defer { statement.reset() }
      guard try statement.step(), let due = statement.optionalDate(0), due <= now.furthestDue else { return nil }
      return due
    }

    // MARK: Claiming

    func lease(_ request: LeaseRequest, owner: String) throws -> [DownloadRecord] {
      // Harmless by itself, should the rest fail.
      try promote(at: request.now)
      let taken = try choose(request.select)
      return try isolated(taken.count > 1) {
        try taken.map { try claim($0, at: request.now, lease: request.until, owner: owner) }
      }
    }

    private func claim(_ record: DownloadRecord, at now: Date, lease: Date, owner: String) throws -> DownloadRecord {
      let claim = try prepared(.claim)
      claim.bind(record.generation, 1)
      claim.bind(owner, 2)
      claim.bind(lease, 3)
      claim.bind(now, 4)
      try claim.run()
      moved(from: .waiting, to: .transferring)
      var record = record
      record.phase = .transferring
      record.owner = owner
      record.attempts += 1
      record.updatedAt = now
      return record
    }

    /// Makes downloads ready whose time has come, or can only come from a clock that jumped.
    private func promote(at now: Date) throws {
      let isAnyDue = try prepared(.isAnyDue)
      isAnyDue.bind(now, 1)
      isAnyDue.bind(now.furthestDue, 2)
      do {
        defer { isAnyDue.reset() }
        guard try isAnyDue.step(), isAnyDue.int64(0) != 0 else { return }
      }
      for (text, time) in [(StatementText.promoteDue, now), (.promoteJumped, now.furthestDue)] {
        let promote = try prepared(text)
        promote.bind(time, 1)
        try promote.run()
      }
    }

    /// Reads the waiting downloads in order, one by one, only as far as `select` wants.
    private func choose(_ select: (Candidate) -> LeaseSelection) throws -> [DownloadRecord] {
      var taken: [DownloadRecord] = []
      var skipped: Set<Candidate> = []
      let ready = try prepared(.ready)
      defer { ready.reset() }
      let row = try prepared(.recordOfGeneration)
      while try ready.step() {
        row.bind(ready.int64(0), 1)
        defer { row.reset() }
        guard try row.step() else { continue }
        let candidate = try RecordColumns.candidate(row)
        if skipped.contains(candidate) { continue }
        switch select(candidate) {
        case .take: taken.append(try RecordColumns.record(row))
        case .skip: skipped.insert(candidate)
        case .stop: return taken
        }
      }
      return taken
    }

    // MARK: Saving

    func save(_ record: DownloadRecord, _ fields: RecordFields, owner: String, at now: Date) throws -> Bool {
      let id = RecordColumns.key(record.id.rawValue)
      let statement = try prepared(StatementText(saving: fields))
      statement.bind(record.generation, 1)
      statement.bind(id, 2)
      statement.bind(owner, 3)
      statement.bind(now, 4)
      if fields.contains(.state) {
        statement.bind(record.phase.rawValue, 5)
        statement.bind(record.notBefore, 6)
        statement.bind(try RecordColumns.error(record.error), 7)
        statement.bind(Int64(record.attempts), 8)
        statement.bind(Int64(record.consecutiveFailures), 9)
        statement.bind(record.bytesFetched, 10)
        statement.bind(record.resumedFrom, 11)
        statement.bind(Int64(record.phase.isActive ? 1 : 0), 12)
        statement.bind(record.awaited?.rawValue, 31)
        statement.bind(record.repeatedFailures == 0 ? nil : Int64(record.repeatedFailures), 32)
      }
      if fields.contains(.checkpoint) {
        try RecordColumns.bind(record.checkpoint, from: 13, to: statement)
        statement.bind(BlockMarkText.text(record.checkpoint.marks), 30)
        statement.bind(record.checkpoint.resource, 33)
      }
      if fields.contains(.steps) { try RecordColumns.bind(record.steps, from: 23, to: statement) }
      guard try statement.run() == 1 else { return false }
      // What is held was active.
      if fields.contains(.state) { moved(from: .transferring, to: record.phase) }

      if fields.contains(.link), !fields.contains(.request) {
        let link = try prepared(.saveLink)
        link.bind(record.generation, 1)
        try RecordColumns.bindLink(record.request, from: 2, to: link)
        try link.run()
      }
      if fields.contains(.request) {
        var record = record
        record.request.id = DownloadID(id)
        record.request.tags = Set(record.request.tags.map(RecordColumns.key))
        record.updatedAt = now
        try writeRequest(record, tagsBefore: try tags(of: record))
      }
      return true
    }

    private func tags(of record: DownloadRecord) throws -> Set<String> {
      let row = try prepared(.tags)
      row.bind(record.generation, 1)
      defer { row.reset() }
      return try row.step() ? try RecordColumns.tags(row.optionalText(0), of: record.id.rawValue) : []
    }
  }
#endif
