#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import GRDB

  /// Ranking all downloads again, in batches. The name of the ranking is deleted before the first batch and written
  /// after the last one: if the work is interrupted, the next store finds no name and starts again.
  extension LedgerConnection {
    /// The number of downloads ranked in one commit: a few milliseconds of work, for which other changes wait.
    static let rankingBatch = 2_000

    private static let done = "ranking"
    private static let underWay = "ranking under way"

    /// - Parameter always: Whether to rank again even if the ledger's ranking has the same name.
    /// - Returns: A number for ``rank(_:as:)``; `nil` if all downloads have this ranking already.
    func beginRanking(by ranking: Ranking, always: Bool) throws -> Int? {
      setRanking(ranking)
      if !always, try isSet(Self.done, to: ranking) { return nil }
      let clear = try prepared(.clearSetting)
      clear.bind(Self.done)
      try clear.run()
      try set(Self.underWay, to: ranking)
      return rankingNumber
    }

    /// The next batch of downloads to rank, which are those that have not finished.
    func rankable(after generation: Int64) throws -> [Int64] {
      let page = try prepared(.rankPage)
      page.bind(generation)
      page.bind(Int64(Self.rankingBatch))
      defer { page.reset() }
      var generations: [Int64] = []
      while try page.step() { generations.append(page.int64()) }
      return generations
    }

    /// - Returns: `false` if another ranking has replaced this one meanwhile.
    func rank(_ generations: [Int64], as number: Int) throws -> Bool {
      guard number == rankingNumber else { return false }
      forgetLanes()
      for generation in generations { try rankAnew(generation) }
      return true
    }

    /// Ranks a download that is in no list of lanes, unless its record is damaged.
    func rankAnew(_ generation: Int64) throws {
      // Another store may be ranking the same downloads differently: then the ranks get no name.
      let ranking = try rankingToWrite()
      let find = try prepared(.rankable)
      find.bind(generation)
      let found: (record: DownloadRecord, kind: Int64)?
      do {
        found = try find.first { (try record($0, .ranking), $0.int64()) }
      } catch is DamagedRow { return }
      // The host is read from the kind, which saves parsing the URL.
      guard let (record, kindNumber) = found, let host = try kind(kindNumber)?.candidate.host else { return }
      let rank = ranking.rank(record.rankingContext(host: host))
      guard rank != record.rank else { return }
      let update = try prepared(.setRank)
      update.bind(rank.columnValue)
      update.bind(generation)
      try update.run()
    }

    /// Ends ranking. The name is written unless another store has written ranks of another ranking meanwhile.
    func endRanking(as number: Int) throws {
      guard number == rankingNumber else { return }
      let ranking = try rankingToWrite()
      if try isSet(Self.underWay, to: ranking) { try set(Self.done, to: ranking) }
      let clear = try prepared(.clearSetting)
      clear.bind(Self.underWay)
      try clear.run()
    }

    private func isSet(_ name: String, to ranking: Ranking) throws -> Bool {
      let find = try prepared(.isRanked)
      find.bind(name)
      find.bind(ranking.name)
      return try find.first { _ in true } ?? false
    }

    private func set(_ name: String, to ranking: Ranking) throws { try set(name, to: ranking.name) }

    // MARK: Settings

    func setting(_ name: String) throws -> String? {
      let find = try prepared(.setting)
      find.bind(name)
      return try find.first { $0.optionalText() } ?? nil
    }

    func set(_ name: String, to value: String) throws {
      let statement = try prepared(.setSetting)
      statement.bind(name)
      statement.bind(value)
      try statement.run()
    }
  }
#endif
