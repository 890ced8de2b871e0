#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Adding downloads. Those with different ids and without dependencies are inserted by one statement.
  extension LedgerTables {
    /// Adds downloads, and checks that they do not wait for each other afterwards.
    func add(_ additions: [LedgerAddition], at now: Date) throws -> [LedgerAddOutcome] {
      let additions = additions.map(\.storable)
      let ids = Set(additions.lazy.filter { !$0.request.after.isEmpty }.map(\.request.id)).sorted()
      if !ids.isEmpty { try holdDependencies() }
      let before = try ids.map { (id: $0, isNeeded: try isNeeded($0), waitsFor: try waitsFor($0)) }
      var outcomes: [LedgerAddOutcome] = []
      outcomes.reserveCapacity(additions.count)
      for group in Self.groups(additions) { outcomes += try addDistinct(Array(additions[group]), at: now) }
      guard !before.isEmpty else { return outcomes }
      let after = Dictionary(outcomes.map { ($0.record.id, $0.record.waitsFor) }) { $1 }
      let changed = before.filter { id, _, waitsFor in after[id]?.isSubset(of: waitsFor) == false }.map(\.id)
      try DependencyCycle.check(changed.sorted(), visitsOthers: before.contains(where: \.isNeeded)) { id in
        try after[id] ?? waitsFor(id)
      }
      return outcomes
    }

    /// The largest number of downloads that one statement inserts.
    private static let mostInserted = 5_000

    /// Parts of additions that can be inserted together: without equal ids, and a download with dependencies alone, because
    /// they may be among the others.
    private static func groups(_ additions: [LedgerAddition]) -> [Range<Int>] {
      var groups: [Range<Int>] = []
      var start = 0
      var ids: Set<DownloadID> = []
      for (index, addition) in additions.enumerated() {
        let isAlone = !addition.request.after.isEmpty
        let mayJoin = !isAlone && ids.count < mostInserted && ids.insert(addition.request.id).inserted
        if mayJoin { continue }
        if start < index { groups.append(start..<index) }
        ids = [addition.request.id]
        start = index
        guard isAlone else { continue }
        groups.append(index..<index + 1)
        ids = []
        start = index + 1
      }
      if start < additions.count { groups.append(start..<additions.count) }
      return groups
    }

    private func addDistinct(_ additions: [LedgerAddition], at now: Date) throws -> [LedgerAddOutcome] {
      var outcomes: [LedgerAddOutcome?] = try insert(additions, at: now).map { record in
        record.map { LedgerAddOutcome(isNew: true, record: $0) }
      }
      let known = outcomes.indices.filter { outcomes[$0] == nil }
        .sorted { additions[$0].request.id < additions[$1].request.id }
      // Rows are locked in the order of their generations, which may not be that of the ids.
      let ids = PostgresValue.keys(known.map { additions[$0].request.id })
      if known.count > 1 { _ = try run("SELECT FROM download WHERE id = ANY($1) ORDER BY generation FOR UPDATE", ids) }
      for index in known { outcomes[index] = try addKnown(additions[index], at: now) }
      return outcomes.compactMap { $0 }
    }

    /// Inserts the downloads whose ids are new.
    /// - Returns: The records of the inserted ones, and `nil` for the others, in the order of the additions.
    private func insert(_ additions: [LedgerAddition], at now: Date) throws -> [DownloadRecord?] {
      let generations = try numbers(
        "SELECT nextval('generation') FROM generate_series(1, $1)", [.integer(Int64(additions.count))])
      let ranking = try rankingToWrite()
      var records: [DownloadRecord] = []
      var kinds: [Kind] = []
      for (addition, generation) in zip(additions, generations) {
        var record = DownloadRecord(
          request: addition.request, generation: generation, arrival: addition.arrival, rank: Rank(),
          location: addition.location, createdAt: now)
        let kind = Kind(record)
        record.rank = ranking.rank(record.rankingContext(host: kind.candidate.host))
        try record.follow(since: [], isFinished)
        kinds.append(kind)
        records.append(record)
      }
      let inserted = try insert(records, try numbers(of: kinds), RecordColumns.new, Self.newInsertion)
      let new = records.filter { inserted.contains($0.generation) }
      try insertTags(of: new)
      for record in new { try setDependencies(record.waitsFor, of: record.generation, before: []) }
      moved(new.count, from: nil, to: .waiting)
      for index in records.indices
      where additions[index].isPaused && inserted.contains(records[index].generation) {
        let waiting = records[index]
        records[index].apply(.pause)
        try write(records[index], over: waiting, isTaken: true)
      }
      return records.map { inserted.contains($0.generation) ? $0 : nil }
    }

    /// Inserts records with what they have in all columns, unless their ids are known.
    /// - Returns: The generations of the inserted ones.
    func insert(_ records: [DownloadRecord]) throws -> Set<Int64> {
      guard !records.isEmpty else { return [] }
      let stored = records.map { byServer($0) }
      return try insert(stored, try numbers(of: records.map { Kind($0) }), RecordColumns.all, Self.fullInsertion)
    }

    /// Inserts records, unless their ids are known.
    /// - Parameters:
    ///   - columns: The columns that can have a value.
    ///   - sql: The ``insertion(_:)`` for these.
    /// - Returns: The generations of the inserted ones.
    private func insert(
      _ records: [DownloadRecord], _ kinds: [Int64], _ columns: [RecordColumn], _ sql: String
    ) throws -> Set<Int64> {
      // In the order of the ids: of two calls that add the same ones, one waits for the other, and not each for the other.
      let ids = records.map(\.id)
      let order = records.indices.sorted { ids[$0] < ids[$1] }
      var values = try columns.map { column in try order.map { try column.value(records[$0]) } }
      values.append(order.map { .integer(kinds[$0]) })
      let opening = memory.owner.number
      if records.count >= Self.leastCopied {
        let all = CopiedColumns(
          columns.map(\.name) + ["kind", "opening"], values + [records.map { _ in .integer(opening) }])
        if let copied = try copy(all) { return copied }
      }
      return Set(try numbers(sql, values.map(PostgresValue.array) + [.integer(opening)]))
    }

    private static let newInsertion = insertion(RecordColumns.new)
    private static let fullInsertion = insertion(RecordColumns.all)

    private static func insertion(_ columns: [RecordColumn]) -> String {
      let names = columns.map(\.name) + ["kind"]
      let arrays = names.enumerated().map { "$\($0 + 1)::\(Schema.type(of: $1))[]" }
      return """
        INSERT INTO download (\(names.joined(separator: ", ")), opening)
        SELECT new.*, $\(names.count + 1)::bigint FROM unnest(\(arrays.joined(separator: ", "))) AS new
        ON CONFLICT (id) DO NOTHING RETURNING generation
        """
    }

    func insertTags(of records: [DownloadRecord]) throws {
      let tags = records.flatMap { record in record.request.tags.map { (tag: $0, generation: record.generation) } }
      guard !tags.isEmpty else { return }
      _ = try run(
        "INSERT INTO tag SELECT * FROM unnest($1::text[], $2::bigint[])", .texts(tags.map { StoredText.key($0.tag) }),
        .integers(tags.map(\.generation)))
    }

    /// Adds a download whose id was known a moment ago.
    private func addKnown(_ addition: LedgerAddition, at now: Date) throws -> LedgerAddOutcome {
      let id = addition.request.id
      let known: DownloadRecord?
      do { known = try record(id, isLocked: true) } catch is DamagedRow { known = nil }
      if let known {
        let isElsewhere = known.location.flatMap { old in addition.location.map { $0 != old } } ?? false
        let isLost = known.phase == .finished && addition.lost != nil && known.steps.artifact == addition.lost
        if isElsewhere, known.phase.isActive {
          throw DownloadError(
            .inUse,
            "“\(id.rawValue.prefix(300))” is being downloaded to \(known.location ?? ""): wait until it has ended",
            stage: PostgresFault.stage)
        }
        if !isElsewhere, !isLost { return try addAgain(known, addition, at: now) }
      }
      try forget(id)
      guard let record = try insert([addition], at: now)[0] else {
        throw PostgresFault(.conflict, "another program adds “\(id.rawValue.prefix(300))” at the same time")
      }
      return LedgerAddOutcome(isNew: true, record: record)
    }

    private func addAgain(
      _ known: DownloadRecord, _ addition: LedgerAddition, at now: Date
    ) throws -> LedgerAddOutcome {
      var record = known
      if try record.addAgain(addition, at: now, ranking: try rankingToWrite(), isFinished) {
        try write(record, over: known, isTaken: true)
      } else {
        // The download is assigned to this opening even if the addition changes nothing.
        _ = try run(
          "UPDATE download SET opening = $1 WHERE generation = $2 AND opening <> $1", .integer(memory.owner.number),
          .integer(known.generation))
      }
      return LedgerAddOutcome(isNew: known.phase == .finished && record.phase != .finished, record: record)
    }
  }

  extension LedgerAddition {
    /// The addition with the request as it is read back.
    fileprivate var storable: LedgerAddition {
      var addition = self
      addition.request.id = DownloadID(RecordColumns.key(request.id.rawValue))
      addition.request.makeStorable()
      return addition
    }
  }
#endif
