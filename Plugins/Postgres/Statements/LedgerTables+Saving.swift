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
      var values = try RecordColumns.changing.map { PostgresValue(try $0.value(record)) }
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
      // In the order of the generations, as every transaction locks its rows.
      for index in saves.indices.sorted(by: { saves[$0].record.generation < saves[$1].record.generation }) {
        let result = try save(saves[index], at: now)
        exchange.saved[index] = result.isSaved
        if result.hasReleased { exchange.mayHaveReleasedDelayed = true }
        if result.isReopened { exchange.reopened.insert(saves[index].record.id) }
      }
      if let request { exchange.leased = try lease(request) }
      return exchange
    }

    struct SaveResult {
      var isSaved = false
      /// Whether a download that waited for this one waits for no other one now.
      var hasReleased = false
      /// Whether the outcome was for an earlier request, and the download waits again.
      var isReopened = false
    }

    func save(_ save: LedgerSave, at now: Date) throws -> SaveResult {
      var record = save.record
      let fields = save.fields
      var kind = PostgresValue.null
      if fields.contains(.link) {
        guard let linked = try linked(record) else { return SaveResult() }
        kind = .integer(try number(of: Kind(location: linked.location, candidate: linked.candidate)))
        (record.request, record.added, record.rank) = (linked.request, linked.added, linked.rank)
      }
      let text = SaveText(fields, keepsLease: record.phase.isActive)
      var values = try text.columns.map { PostgresValue(try $0.value(record)) }
      values += [
        .real(now.timeIntervalSince1970), kind, .integer(record.generation), .key(record.id.rawValue),
        .integer(memory.owner.number),
      ]
      let rows = try run(text.sql, all: values)
      guard rows.count > 0 else { return SaveResult() }
      let mayLearnSize = fields.contains(.checkpoint) && record.phase != .finished
      if mayLearnSize, ByteCount(rows.integer(0, 0)) != record.checkpoint.total { try rankAnew([record.generation]) }
      var result = SaveResult(isSaved: true)
      guard fields.contains(.state) else { return result }
      // A held record was active.
      moved(from: .transferring, to: record.phase)
      if !record.phase.isActive {
        let isSame = try RecordColumns.work.enumerated().allSatisfy { try $1.value(record) == rows.column(0, $0 + 1) }
        if !isSame, let isReopened = try reopen(record) {
          result.isReopened = isReopened
          return result
        }
      }
      if record.phase == .finished { result.hasReleased = try release(by: record.id, at: now) }
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

  /// The statement of a save, one for each set of fields. It changes no row unless the owner holds the record.
  ///
  /// It returns the size of the file before, and the columns of ``RecordColumns/work``.
  private struct SaveText: Sendable {
    /// The columns of the first parameters. The time, the kind or a null, generation, id and owner follow.
    let columns: [RecordColumn]
    let sql: String

    private static let known = Mutex<[Int: SaveText]>([:])

    init(_ fields: RecordFields, keepsLease: Bool) {
      let givesBack = fields.contains(.state) && !keepsLease
      let index = fields.rawValue << 1 | (givesBack ? 1 : 0)
      self = Self.known.withLock { known in
        if let text = known[index] { return text }
        let text = SaveText(fields, givesBack: givesBack)
        known[index] = text
        return text
      }
    }

    private init(_ fields: RecordFields, givesBack: Bool) {
      columns = RecordColumns.columns(fields)
      let count = columns.count
      var assignments = columns.enumerated().map { "\($1.name) = $\($0 + 1)" }
      assignments.append("updated_at = $\(count + 1)")
      assignments.append("kind = coalesce($\(count + 2), kind)")
      if givesBack { assignments.append("owner = NULL, lease = NULL, is_outdated = NULL") }
      sql = """
        UPDATE download SET \(assignments.joined(separator: ", "))
        FROM (SELECT generation AS number, total AS known FROM download WHERE generation = $\(count + 3) FOR UPDATE) AS old
        WHERE generation = old.number AND id = $\(count + 4) AND owner = $\(count + 5)
        RETURNING old.known, \(RecordColumns.names(RecordColumns.work))
        """
    }
  }
#endif
