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
      record.request = request
      record.rank = addition.rank
      record.updatedAt = now
      try writeRequest(record, tagsBefore: old.request.tags)
      if old.phase == .failed || old.phase == .cancelled {
        record.waitAgain()
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

    func record(generation: Int64) throws -> DownloadRecord? {
      let statement = try prepared(.recordOfGeneration)
      statement.bind(generation, 1)
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

    func claim(
      at now: Date, lease: Date, owner: String, select: (Candidate) -> ClaimSelection
    ) throws -> [DownloadRecord] {
      for (text, time) in [(StatementText.promoteDue, now), (.promoteJumped, now.furthestDue)] {
        let promote = try prepared(text)
        promote.bind(time, 1)
        try promote.run()
      }

      let taken = try choose(select)
      let claim = try prepared(.claim)
      var records: [DownloadRecord] = []
      for generation in taken {
        claim.bind(generation, 1)
        claim.bind(owner, 2)
        claim.bind(lease, 3)
        claim.bind(now, 4)
        try claim.run()
        moved(from: .waiting, to: .transferring)
        if let record = try record(generation: generation) { records.append(record) }
      }
      return records
    }

    /// Reads the waiting downloads in order, one by one, only as far as `select` wants.
    private func choose(_ select: (Candidate) -> ClaimSelection) throws -> [Int64] {
      var taken: [Int64] = []
      var skippedHosts: Set<String> = []
      let ready = try prepared(.ready)
      defer { ready.reset() }
      while try ready.step() {
        let generation = ready.int64(0)
        if !skippedHosts.isEmpty, skippedHosts.contains(ready.text(1)) { continue }
        guard let candidate = try candidate(generation) else { continue }
        switch select(candidate) {
        case .take: taken.append(generation)
        case .skip: break
        case .skipHost: skippedHosts.insert(candidate.host)
        case .stop: return taken
        }
      }
      return taken
    }

    private func candidate(_ generation: Int64) throws -> Candidate? {
      let row = try prepared(.candidate)
      row.bind(generation, 1)
      defer { row.reset() }
      guard try row.step() else { return nil }
      let id = row.text(0)
      return Candidate(
        id: DownloadID(id), host: row.text(1), intent: RecordColumns.intent(row, 2),
        priority: Priority(Int16(clamping: row.int64(3))),
        tags: try RecordColumns.tags(row.optionalText(4), of: id))
    }

    // MARK: Saving

    func save(_ record: DownloadRecord, _ fields: RecordFields, owner: String, at now: Date) throws -> Bool {
      let id = RecordColumns.key(record.id.rawValue)
      // The commonest save, a checkpoint alone, is one statement that checks the owner itself.
      if fields == .checkpoint { return try saveCheckpoint(record, id: id, owner: owner, at: now) }

      let held = try prepared(.held)
      held.bind(record.generation, 1)
      held.bind(id, 2)
      held.bind(owner, 3)
      guard try held.step() else {
        held.reset()
        return false
      }
      let old = (phase: held.text(0), tags: held.optionalText(1))
      held.reset()

      // Before the state, which may give the claim back.
      if fields.contains(.checkpoint) { _ = try saveCheckpoint(record, id: id, owner: owner, at: now) }
      if fields.contains(.request) {
        var record = record
        record.request.id = DownloadID(id)
        record.request.tags = Set(record.request.tags.map(RecordColumns.key))
        record.updatedAt = now
        try writeRequest(record, tagsBefore: try RecordColumns.tags(old.tags, of: id))
      }
      if fields.contains(.steps) {
        let steps = try prepared(.saveSteps)
        steps.bind(record.generation, 1)
        steps.bind(try RecordColumns.steps(record.steps), 2)
        steps.bind(now, 3)
        try steps.run()
      }
      if fields.contains(.state) { try saveState(record, from: DownloadState.Phase(rawValue: old.phase), at: now) }
      if fields.isEmpty {
        let touch = try prepared(.touch)
        touch.bind(record.generation, 1)
        touch.bind(now, 2)
        try touch.run()
      }
      return true
    }

    private func saveCheckpoint(_ record: DownloadRecord, id: String, owner: String, at now: Date) throws -> Bool {
      let statement = try prepared(.saveCheckpoint)
      statement.bind(record.generation, 1)
      statement.bind(id, 2)
      statement.bind(owner, 3)
      try RecordColumns.bind(record.checkpoint, from: 4, to: statement)
      statement.bind(now, 14)
      return try statement.run() == 1
    }

    private func saveState(_ record: DownloadRecord, from old: DownloadState.Phase?, at now: Date) throws {
      let statement = try prepared(.saveState)
      statement.bind(record.generation, 1)
      statement.bind(record.phase.rawValue, 2)
      statement.bind(record.notBefore, 3)
      statement.bind(try RecordColumns.error(record.error), 4)
      statement.bind(Int64(record.attempts), 5)
      statement.bind(Int64(record.consecutiveFailures), 6)
      statement.bind(record.bytesFetched, 7)
      statement.bind(record.resumedFrom, 8)
      statement.bind(now, 9)
      statement.bind(Int64(record.phase.isActive ? 1 : 0), 10)
      try statement.run()
      moved(from: old, to: record.phase)
    }
  }
#endif
