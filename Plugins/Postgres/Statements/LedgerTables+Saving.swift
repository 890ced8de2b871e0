#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import Synchronization

  // Changing records: updates of requests, and what the owner of a download saves.
  extension LedgerTables {
    // MARK: Updating

    /// Changes a record, whether or not an owner holds it.
    func update(
      _ id: DownloadID, at now: Date, _ change: (inout DownloadRecord) throws -> Void
    ) throws -> DownloadRecord? {
      guard let known = try record(id, isLocked: true) else { return nil }
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
      let isChanged = try record.update(
        by: memory.owner.text, at: now, ranking: try rankingToWrite(), isFinished: isFinished
      ) { record in
        do { try change(&record) } catch { throw RefusedChange(error: error) }
      }
      guard isChanged else { return nil }
      record.request.makeStorable()
      record.added?.makeStorable()
      try write(record, over: known, isTaken: record.phase != known.phase)
      return record
    }

    /// Writes the columns of an existing record that can change.
    ///
    /// - Parameter isTaken: Whether the record is assigned to the opening of this store.
    func write(_ record: DownloadRecord, over known: DownloadRecord, isTaken: Bool) throws {
      let stored = byServer(record)
      var values = try RecordColumns.changing.map { PostgresValue(try $0.value(stored)) }
      values.append(.integer(try number(of: Kind(record))))
      values.append(isTaken ? .integer(memory.owner.number) : .null)
      values.append(.integer(record.generation))
      _ = try run(Self.rewrite, all: values)
      try setTags(record.request.tags, of: record.generation, before: known.request.tags)
      try setDependencies(record.waitsFor, of: record.generation, before: known.waitsFor)
      if record.phase != known.phase { moved(from: known.phase, to: record.phase) }
    }

    private static let rewrite: String = {
      let columns = RecordColumns.changing
      let count = columns.count
      let assignments = columns.enumerated().map { "\($1.name) = $\($0 + 1)" }
      return """
        UPDATE download SET \(assignments.joined(separator: ", ")), kind = $\(count + 1),
          opening = coalesce($\(count + 2), opening)
        WHERE generation = $\(count + 3)
        """
    }()

    private func setTags(_ tags: Set<String>, of generation: Int64, before: Set<String>) throws {
      guard tags != before else { return }
      let (gone, new) = (before.subtracting(tags), tags.subtracting(before))
      if !gone.isEmpty {
        _ = try run(
          "DELETE FROM tag WHERE generation = $1 AND tag = ANY($2)", .integer(generation),
          .texts(gone.map(StoredText.key)))
      }
      if !new.isEmpty {
        _ = try run(
          "INSERT INTO tag SELECT tag, $1 FROM unnest($2::text[]) AS tag", .integer(generation),
          .texts(new.map(StoredText.key)))
      }
    }

    // MARK: Saving

    func exchange(_ saves: [LedgerSave], _ request: LeaseRequest?, at now: Date) throws -> LedgerExchange {
      var exchange = LedgerExchange()
      exchange.saved = [Bool](repeating: false, count: saves.count)
      for (index, result) in try zip(saves.indices, save(saves, at: now)) {
        exchange.saved[index] = result.isSaved
        if result.hasReleased { exchange.mayHaveReleasedDelayed = true }
        if result.isReopened { exchange.reopened.insert(saves[index].record.id) }
      }
      if let request { exchange.leased = try lease(request) }
      return exchange
    }

    /// The tables of what is kept of answers.
    enum Answers: CaseIterable, CustomStringConvertible {
      case exchange, change

      var description: String { self == .exchange ? "answer" : "change_answer" }
    }

    /// Keeps what gives the answer of a change again.
    /// - Parameter isMore: Whether the exchange has leased more in another transaction.
    /// - Throws: If the change has been made again: this attempt comes too late.
    func keep(_ answer: String, _ number: Int64, in table: Answers, isMore: Bool = false) throws {
      let rows = try run(
        """
        INSERT INTO \(table) AS a VALUES ($1, $2, $3) ON CONFLICT (opening) DO UPDATE
        SET number = excluded.number, kept = excluded.kept WHERE a.number \(isMore ? "<=" : "<") excluded.number RETURNING 1
        """, .integer(memory.owner.number), .integer(number), .text(answer))
      if rows.count == 0 { throw PostgresFault(.refused, "the change \(number) was made again") }
    }

    /// What is kept of the answer of a change that has taken effect. Waits for an earlier attempt that may be about to.
    func kept(_ number: Int64, in table: Answers) throws -> String? {
      // There is a row to wait for, also when the earlier attempt is the first change of this owner.
      _ = try run("INSERT INTO \(table) VALUES ($1, 0, '') ON CONFLICT DO NOTHING", .integer(memory.owner.number))
      let rows = try run(
        "SELECT number, kept FROM \(table) WHERE opening = $1 FOR UPDATE", .integer(memory.owner.number))
      return rows.count > 0 && rows.integer(0, 0) == number ? rows.text(0, 1) : nil
    }

    /// The answer of an exchange that has taken effect.
    func answer(_ number: Int64, _ saves: [LedgerSave]) throws -> LedgerExchange? {
      guard let kept = try kept(number, in: .exchange) else { return nil }
      return try LedgerExchange(kept: kept, for: saves) { generations in
        try readable(
          try run(
            "SELECT \(RecordColumns.list) FROM download WHERE generation = ANY($1) AND owner = $2 ORDER BY \(Schema.order)",
            .integers(generations), .integer(memory.owner.number)))
      }
    }

    struct SaveResult {
      var isSaved = false
      /// Whether a download that waited for this one waits for no other one now.
      var hasReleased = false
      /// Whether the outcome was for an earlier request, and the download waits again.
      var isReopened = false
    }

    func save(_ save: LedgerSave, at now: Date) throws -> SaveResult { try self.save([save], at: now)[0] }

    /// Saves records.
    /// - Returns: The results in the order of the saves.
    private func save(_ saves: [LedgerSave], at now: Date) throws -> [SaveResult] {
      var results = [SaveResult](repeating: SaveResult(), count: saves.count)
      var rows = [SavedRow?](repeating: nil, count: saves.count)
      // Saves of the same fields are one statement, in the order of the generations, as every transaction locks its rows.
      let groups = Dictionary(grouping: saves.indices) { SaveText.Key(saves[$0]) }
      for (key, group) in groups.sorted(by: { $0.key < $1.key }) {
        let group = group.sorted { saves[$0].record.generation < saves[$1].record.generation }
        for (index, row) in zip(group, try write(group.map { saves[$0].record }, key, at: now)) { rows[index] = row }
      }
      var finished: [DownloadID: Int] = [:]
      for (index, save) in saves.enumerated() {
        guard let row = rows[index] else { continue }
        results[index] = try conclude(save, row)
        if save.fields.contains(.state), save.record.phase == .finished, !results[index].isReopened {
          finished[save.record.id] = index
        }
      }
      for id in try needed(finished.keys.sorted()) {
        if let index = finished[id] { results[index].hasReleased = try release(by: id, at: now) }
      }
      return results
    }

    /// What a save has found in the row.
    private struct SavedRow {
      /// The size of the file before.
      var total: ByteCount
      /// The columns of ``RecordColumns/work``.
      var work: [ColumnValue]
    }

    /// Writes fields of records with one statement, which changes no row unless the owner holds the record.
    /// - Returns: `nil` for records that were not saved.
    private func write(_ given: [DownloadRecord], _ key: SaveText.Key, at now: Date) throws -> [SavedRow?] {
      guard Set(given.map(\.generation)).count == given.count else {
        return try given.flatMap { try write([$0], key, at: now) }
      }
      var records: [DownloadRecord] = []
      var kinds: [ColumnValue] = []
      for var record in given {
        if key.fields.contains(.link) {
          guard let linked = try linked(record) else { continue }
          let kind = try number(of: Kind(location: linked.location, candidate: linked.candidate))
          (record.request, record.added, record.rank) = (linked.request, linked.added, linked.rank)
          kinds.append(.integer(kind))
        } else {
          kinds.append(.null)
        }
        records.append(byServer(record))
      }
      guard !records.isEmpty else { return given.map { _ in nil } }
      let text = SaveText.of(key)
      var values = try text.columns.map { column in PostgresValue.array(try records.map { try column.value($0) }) }
      values += [
        .array(kinds), .integers(records.map(\.generation)), .texts(records.map { StoredText.key($0.id.rawValue) }),
        .real(now.timeIntervalSince1970), .integer(memory.owner.number),
      ]
      let rows = try run(text.sql, all: values)
      var found: [Int64: SavedRow] = [:]
      for row in 0..<rows.count {
        guard let generation = rows.integer(row, 0) else { continue }
        let work = RecordColumns.work.indices.map { rows.column(row, $0 + 2) }
        found[generation] = SavedRow(total: ByteCount(rows.integer(row, 1)), work: work)
      }
      return given.map { found[$0.generation] }
    }

    /// What follows from a save.
    private func conclude(_ save: LedgerSave, _ row: SavedRow) throws -> SaveResult {
      let record = save.record
      let mayLearnSize = save.fields.contains(.checkpoint) && record.phase != .finished
      if mayLearnSize, row.total != record.checkpoint.total { try rankAnew([record.generation]) }
      var result = SaveResult(isSaved: true)
      guard save.fields.contains(.state) else { return result }
      // A held record was active.
      moved(from: .transferring, to: record.phase)
      guard !record.phase.isActive else { return result }
      let isSame = try RecordColumns.work.enumerated().allSatisfy { try $1.value(record) == row.work[$0] }
      if !isSame, let isReopened = try reopen(record) { result.isReopened = isReopened }
      return result
    }

    /// Judges a saved outcome by the request of the row, which may differ from that of the run; see
    /// `DownloadRecord.reopen(afterWorkFor:_:)`.
    /// - Returns: Whether the download has another phase than the saved one; `nil` if the row is as it was saved.
    private func reopen(_ saved: DownloadRecord) throws -> Bool? {
      // A damaged record does not affect the others of the exchange.
      guard let known = try locked([saved.generation]).first, known.damage == nil else { return nil }
      var record = known.record
      guard try record.reopen(afterWorkFor: saved.request, try rankingToWrite()) else { return nil }
      try write(record, over: known.record, isTaken: false)
      return record.phase != known.record.phase
    }

    /// The record of the row with a changed link, and with the rank that follows from it; `nil` if there is no row.
    private func linked(_ record: DownloadRecord) throws -> DownloadRecord? {
      guard var known = try locked([record.generation]).first?.get() else { return nil }
      known.setLink(of: record, ranking: try rankingToWrite())
      known.request.makeStorable()
      return known
    }
  }

  /// The statement of saves, one for each set of fields.
  ///
  /// Its parameters are arrays of the columns, the kinds or nulls, generations and ids, then the time and the owner. It
  /// returns of each saved row the generation, the size of the file before, and the columns of ``RecordColumns/work``.
  private struct SaveText: Sendable {
    struct Key: Hashable, Comparable {
      var fields: RecordFields
      /// Whether the owner holds the record no longer.
      var givesBack: Bool

      init(_ save: LedgerSave) {
        fields = save.fields
        givesBack = fields.contains(.state) && !save.record.phase.isActive
      }

      private var number: Int { fields.rawValue << 1 | (givesBack ? 1 : 0) }

      static func < (left: Self, right: Self) -> Bool { left.number < right.number }
    }

    let columns: [RecordColumn]
    let sql: String

    private static let known = Mutex<[Key: SaveText]>([:])

    static func of(_ key: Key) -> SaveText {
      known.withLock { known in
        if let text = known[key] { return text }
        let text = SaveText(key)
        known[key] = text
        return text
      }
    }

    private init(_ key: Key) {
      columns = RecordColumns.columns(key.fields)
      let count = columns.count
      let names = columns.map(\.name)
      var assignments = names.map { "\($0) = new.\($0)" }
      assignments.append("updated_at = $\(count + 4)::float8")
      if key.fields.contains(.link) { assignments.append("kind = new.new_kind") }
      if key.givesBack { assignments.append("owner = NULL, lease = NULL, is_outdated = NULL") }
      let arrays = names.enumerated().map { "$\($0 + 1)::\(Schema.type(of: $1))[]" }
      let more = ["$\(count + 1)::bigint[]", "$\(count + 2)::bigint[]", "$\(count + 3)::text[]"]
      let given = (names + ["new_kind", "new_generation", "new_id"]).joined(separator: ", ")
      sql = """
        UPDATE download SET \(assignments.joined(separator: ", "))
        FROM (
          SELECT old.total AS known, given.* FROM unnest(\((arrays + more).joined(separator: ", "))) AS given (\(given))
          JOIN download AS old ON old.generation = given.new_generation ORDER BY old.generation FOR UPDATE OF old
        ) AS new
        WHERE download.generation = new.new_generation AND download.id = new.new_id AND download.owner = $\(count + 5)
        RETURNING download.generation, new.known, \(RecordColumns.work.map { "download." + $0.name }.joined(separator: ", "))
        """
    }
  }
#endif
