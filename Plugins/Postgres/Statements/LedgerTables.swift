#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  /// The tables of a ledger during one call: a connection, and what the call has changed so far.
  ///
  /// Rows are locked in the order of their generations, so that two calls rarely wait for each other in a circle; the
  /// server then ends one of them, which is tried again. Used by one thread.
  final class LedgerTables {
    let connection: PostgresConnection
    let memory: StoreMemory
    /// The server's clock minus this machine's, in seconds: the same during the whole call.
    let clockDifference: Double
    /// The number of records that each phase has gained in this transaction.
    private var gains: [DownloadState.Phase: Int] = [:]
    /// Kinds that this transaction has made, which are not remembered unless it is committed.
    private var newKinds: [Kind: Int64] = [:]
    /// Whether the ledger is known to name no ranking other than that of this store.
    private var isRankingNoted = false
    /// Whether this transaction may change dependencies.
    private var holdsDependencies = false
    /// What the lease of this transaction could not lock, and might have taken.
    var passedOver: PassedOver?

    init(_ connection: PostgresConnection, _ memory: StoreMemory) {
      self.connection = connection
      self.memory = memory
      clockDifference = memory.clock.difference
    }

    func run(_ sql: String, _ values: PostgresValue...) throws(PostgresFault) -> PostgresRows {
      try connection.run(sql, values)
    }

    func run(_ sql: String, all values: [PostgresValue]) throws(PostgresFault) -> PostgresRows {
      try connection.run(sql, values)
    }

    // MARK: Transactions

    /// Makes a change in a transaction.
    static func change<Value>(
      _ connection: PostgresConnection, _ memory: StoreMemory, _ body: (LedgerTables) throws -> Value
    ) throws -> Value {
      let tables = LedgerTables(connection, memory)
      let value = try connection.transaction { _ in
        let value = try body(tables)
        try tables.saveGains()
        return value
      }
      for (kind, number) in tables.newKinds { memory.remember(kind, number) }
      return value
    }

    // MARK: Counts

    /// Counts records that have changed phase; the old phase is `nil` for new records, the new one for removed records.
    ///
    /// Active records are few and are counted on demand.
    func moved(_ count: Int = 1, from old: DownloadState.Phase?, to new: DownloadState.Phase?) {
      if let old, !old.isActive { gains[old, default: 0] -= count }
      if let new, !new.isActive { gains[new, default: 0] += count }
    }

    /// The counts have a row for each connection and phase, more or less: one row would be a queue of all workers.
    private func saveGains() throws {
      for (phase, gain) in gains.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where gain != 0 {
        _ = try run(
          """
          INSERT INTO tally AS t VALUES ($1, pg_backend_pid() % 256, $2)
          ON CONFLICT (phase, shard) DO UPDATE SET count = t.count + excluded.count
          """, .text(phase.rawValue), .integer(Int64(gain)))
      }
    }

    /// Counts all records again: a damaged record does not tell in which phase it was counted.
    func recount() throws {
      gains = [:]
      _ = try run("LOCK TABLE tally IN EXCLUSIVE MODE")
      _ = try run("DELETE FROM tally")
      _ = try run("INSERT INTO tally SELECT phase, 0, count(*) FROM download WHERE owner IS NULL GROUP BY phase")
    }

    // MARK: Kinds

    /// The kinds with some numbers; those that do not exist are left out.
    func kinds(_ numbers: Set<Int64>) throws -> [Int64: Kind] {
      var found: [Int64: Kind] = [:]
      var unknown: [Int64] = []
      for number in numbers {
        if let kind = memory.kind(number) ?? newKinds.first(where: { $0.value == number })?.key {
          found[number] = kind
        } else {
          unknown.append(number)
        }
      }
      guard !unknown.isEmpty else { return found }
      let rows = try run(
        "SELECT number, location, host, intent, priority, to_json(tags) FROM kind WHERE number = ANY($1)",
        .integers(unknown))
      for row in 0..<rows.count {
        guard let number = rows.integer(row, 0), let tags = rows.text(row, 5),
          let tags = JSONText<[String]>(columnValue: .text(tags))?.value
        else { continue }
        let candidate = Candidate(
          host: rows.original(row, 2) ?? "", intent: Intent(rows.original(row, 3) ?? ""),
          priority: Priority(Int16(clamping: rows.integer(row, 4) ?? 0)), tags: Set(tags.map(StoredText.original)))
        let kind = Kind(location: rows.original(row, 1), candidate: candidate)
        found[number] = kind
        memory.remember(kind, number)
      }
      return found
    }

    /// The numbers of kinds. New ones are inserted in an order that is the same in all transactions: of two that insert the
    /// same ones, one waits for the other, and not each for the other.
    func numbers(of kinds: [Kind]) throws -> [Int64] {
      var new: Set<Kind> = []
      for kind in kinds where memory.number(of: kind) == nil && newKinds[kind] == nil { new.insert(kind) }
      for (kind, _) in new.map({ ($0, Self.content(of: $0)) }).sorted(by: { $0.1 < $1.1 }) { _ = try number(of: kind) }
      return try kinds.map { try number(of: $0) }
    }

    /// A text that no two kinds have in common.
    private static func content(of kind: Kind) -> String {
      let candidate = kind.candidate
      // No part has this separator, because U+0001 introduces 0 or 1 in each.
      let parts =
        [
          StoredText.stored(candidate.host), kind.location.map { "at \(StoredText.stored($0))" } ?? "",
          StoredText.key(candidate.intent.rawValue), "\(candidate.priority.rawValue)",
        ] + candidate.tags.map(StoredText.key).sorted()
      return parts.joined(separator: "\u{1},")
    }

    /// The number of a kind, which is inserted if it is new.
    func number(of kind: Kind) throws -> Int64 {
      if let known = memory.number(of: kind) ?? newKinds[kind] { return known }
      let candidate = kind.candidate
      let tags = candidate.tags.map(StoredText.key).sorted()
      let (host, intent) = (StoredText.stored(candidate.host), StoredText.key(candidate.intent.rawValue))
      let location = kind.location.map(StoredText.stored)
      let content = PostgresValue.text(Self.content(of: kind))
      let inserted = try run(
        """
        INSERT INTO kind (digest, host, location, intent, priority, tags)
        VALUES (sha256(convert_to($1, 'UTF8')), $2, $3, $4, $5, $6)
        ON CONFLICT (digest) DO NOTHING RETURNING number
        """, content, .text(host), location.map { .text($0) } ?? .null, .text(intent),
        .integer(Int64(candidate.priority.rawValue)), .texts(tags))
      if inserted.count > 0, let number = inserted.integer(0, 0) {
        newKinds[kind] = number
        return number
      }
      let found = try run("SELECT number FROM kind WHERE digest = sha256(convert_to($1, 'UTF8'))", content)
      guard found.count > 0, let number = found.integer(0, 0) else {
        throw PostgresFault(.conflict, "a row of “kind” has disappeared")
      }
      memory.remember(kind, number)
      return number
    }

    // MARK: Owners

    /// The owner with a number.
    func owner(_ number: Int64) throws -> String {
      if let known = memory.owner(number) { return known }
      let rows = try run("SELECT owner FROM opening WHERE number = $1", .integer(number))
      // Whether an owner without a name is alive cannot be told: its lease decides.
      guard rows.count > 0, let owner = rows.text(0, 0) else { return "opening \(number)" }
      memory.remember(owner: owner, number)
      return owner
    }

    // MARK: Ranking

    /// The ranking for ranks that are about to be written. Deletes the name of any other ranking from the ledger.
    func rankingToWrite() throws -> Ranking {
      let ranking = memory.currentRanking.ranking
      if !isRankingNoted {
        let other = try run(
          "SELECT 1 FROM setting WHERE name IN ('ranking', 'ranking under way') AND value <> $1 LIMIT 1",
          .stored(ranking.name))
        if other.count > 0 {
          _ = try run(
            "DELETE FROM setting WHERE name IN ('ranking', 'ranking under way') AND value <> $1", .stored(ranking.name))
        }
        isRankingNoted = true
      }
      return ranking
    }

    // MARK: Dependencies

    /// Waits for other transactions that change dependencies: what they have not committed could complete a cycle.
    func holdDependencies() throws {
      guard !holdsDependencies else { return }
      _ = try run(
        "SELECT pg_advisory_xact_lock(\(Schema.lock), hashtext($1))", .text(memory.schema + " dependencies"))
      holdsDependencies = true
    }
  }
#endif
