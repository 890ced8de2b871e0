#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  // Ranking all downloads again, in batches. The name of the ranking is deleted before the first batch and written
  // after the last one: if the work is interrupted, the next store finds no name and starts again.
  extension LedgerTables {
    /// The number of downloads ranked in one transaction.
    static let rankingBatch = 2_000

    private static let done = "ranking"
    private static let underWay = "ranking under way"

    /// - Parameter always: Whether to rank again even if the ledger's ranking has the same name.
    /// - Returns: Whether downloads have to be ranked.
    func beginRanking(by ranking: Ranking, always: Bool) throws -> Bool {
      if !always, try setting(Self.done) == ranking.name { return false }
      _ = try run("DELETE FROM setting WHERE name = $1", .text(Self.done))
      try set(Self.underWay, to: ranking.name)
      return true
    }

    /// Ranks the next batch of downloads, which are those that have not finished.
    /// - Returns: The last one; `nil` if there is none, or if another ranking has replaced this one meanwhile.
    func rank(after generation: Int64, as number: Int) throws -> Int64? {
      guard number == memory.currentRanking.number else { return nil }
      let page = try numbers(
        """
        SELECT generation FROM download WHERE generation > $1 AND phase <> 'finished'
        ORDER BY generation LIMIT \(Self.rankingBatch)
        """, [.integer(generation)])
      try rankAnew(page)
      return page.last
    }

    /// Ranks downloads whose rank may have changed. Damaged records are left alone.
    func rankAnew(_ generations: [Int64]) throws {
      guard !generations.isEmpty else { return }
      // Another store may be ranking the same downloads differently: then the ranks get no name.
      let ranking = try rankingToWrite()
      let rows = try run(
        """
        SELECT \(RecordColumns.names(RecordColumns.ranking)), kind, owner FROM download
        WHERE generation = ANY($1) ORDER BY generation FOR UPDATE
        """, .integers(generations))
      let found = try found(rows, .ranking).filter { $0.damage == nil || $0.damage == "owner" }
      let kinds = try kinds(Set(found.map(\.kind)))
      var changed: [Int64] = []
      var ranks: [ColumnValue] = []
      for one in found {
        // The host is read from the kind, which saves parsing the URL.
        guard let host = kinds[one.kind]?.candidate.host else { continue }
        let rank = ranking.rank(one.record.rankingContext(host: host))
        guard rank != one.record.rank else { continue }
        changed.append(one.record.generation)
        ranks.append(.key(rank.value))
      }
      guard !changed.isEmpty else { return }
      _ = try run(
        """
        UPDATE download SET rank = new.rank FROM unnest($1::bigint[], $2::bytea[]) AS new(generation, rank)
        WHERE download.generation = new.generation
        """, .integers(changed), .array(ranks))
    }

    /// Ends ranking. The name is written unless another store has written ranks of another ranking meanwhile.
    func endRanking(as number: Int) throws {
      guard number == memory.currentRanking.number else { return }
      let ranking = try rankingToWrite()
      if try setting(Self.underWay) == ranking.name { try set(Self.done, to: ranking.name) }
      _ = try run("DELETE FROM setting WHERE name = $1", .text(Self.underWay))
    }

    // MARK: Settings

    func setting(_ name: String) throws -> String? {
      let rows = try run("SELECT value FROM setting WHERE name = $1", .text(name))
      return rows.count > 0 ? rows.original(0, 0) : nil
    }

    func set(_ name: String, to value: String) throws {
      _ = try run(
        "INSERT INTO setting VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", .text(name),
        .stored(value))
    }
  }
#endif
