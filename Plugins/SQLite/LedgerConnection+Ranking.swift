#if SQLite
  import DownpipeCore
  import GRDB

  /// Ranking anew, in batches. The name of the ranking is taken away before the first one and written after the last
  /// one: whatever stops it in between, the next opening finds no name and begins again.
  extension LedgerConnection {
    /// How many are ranked in one commit: a few milliseconds' work, while which others wait.
    static let rankingBatch = 2_000

    private static let done = "ranking"
    private static let underWay = "ranking under way"

    /// - Parameter always: whether what goes by this name is ranked anew, too.
    /// - Returns: false when all is ranked so already.
    func beginRanking(by ranking: Ranking, always: Bool) throws -> Bool {
      setRanking(ranking)
      if !always, try isSet(Self.done, to: ranking) { return false }
      let clear = try prepared(.clearSetting)
      clear.bind(Self.done)
      try clear.run()
      try set(Self.underWay, to: ranking)
      return true
    }

    /// The next downloads to be ranked: all that have not finished.
    func rankable(after generation: Int64) throws -> [Int64] {
      let page = try prepared(.rankPage)
      page.bind(generation)
      page.bind(Int64(Self.rankingBatch))
      defer { page.reset() }
      var generations: [Int64] = []
      while try page.step() { generations.append(page.int64()) }
      return generations
    }

    func rank(_ generations: [Int64], by ranking: Ranking) throws {
      forgetLanes()
      let find = try prepared(.rankable)
      let update = try prepared(.setRank)
      for generation in generations {
        find.bind(generation)
        let found: (record: DownloadRecord, kind: Int64)?
        do {
          found = try find.first { (try record($0, RecordColumns.ranking), $0.int64()) }
        } catch is DamagedRow { continue }
        // The host is in the kind: no URL is parsed for it.
        guard let (record, number) = found, let host = try kind(number)?.candidate.host else { continue }
        let rank = ranking.rank(record.rankingContext(host: host))
        guard rank != record.rank else { continue }
        update.bind(rank.columnValue)
        update.bind(generation)
        try update.run()
      }
    }

    /// All is ranked, unless another opening has added by another ranking meanwhile.
    func endRanking(by ranking: Ranking) throws {
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

    private func set(_ name: String, to ranking: Ranking) throws {
      let statement = try prepared(.setSetting)
      statement.bind(name)
      statement.bind(ranking.name)
      try statement.run()
    }
  }
#endif
