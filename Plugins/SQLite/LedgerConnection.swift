#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  /// A database connection with its statements, its caches of tables, and the phase changes of its transaction.
  ///
  /// Only used on the connection's queue.
  final class LedgerConnection {
    let db: Database
    /// The owner that this connection writes for.
    let owner: String
    /// The ranking of downloads that this connection adds or changes.
    private var ranking = Ranking.arrival
    /// Counts the rankings of this connection: a name alone does not tell a ranking from its replacement.
    private(set) var rankingNumber = 0
    /// Whether the ledger is known to name no ranking other than ``ranking``.
    private var isRankingNoted = false
    /// The number of records that each phase has gained in this transaction.
    private var gains: [DownloadState.Phase: Int] = [:]
    /// Statements by the number of their text; GRDB's cache would hash the text each time.
    private var statements = [PreparedStatement?](repeating: nil, count: StatementText.allCases.count)
    private var saves = [PreparedStatement?](repeating: nil, count: SaveText.count)

    /// Whether a save has released a download since the exchange began.
    var hasReleased = false
    /// The downloads whose saved outcomes were for an earlier request, since the exchange began.
    var reopened: Set<DownloadID> = []

    /// Whether this transaction has made a change that concerns other processes.
    private var hasNews = false
    /// The number of transactions of this connection with such a change.
    private var ownNews: Int64 = 0
    /// The number of such transactions of others, and the file's data version, at the last look.
    private var known: (news: Int64, version: Int64)?

    // Caches of tables, valid until another connection changes the file.
    var kinds: [Int64: Kind] = [:]
    var kindNumbers: [Kind: Int64] = [:]
    var laneLists: [LaneList] = []
    private var openings: [Int64: String] = [:]
    private var ownOpening: Int64?
    private var lastGeneration: Int64?
    private var dataVersion: Int64 = -1

    init(_ db: Database, owner: String = "") {
      self.db = db
      self.owner = owner
    }

    /// The compiled statement, kept for later transactions.
    func prepared(_ text: StatementText) throws -> PreparedStatement {
      if let known = statements[text.rawValue] { return known.begin() }
      let new = try prepared(text.sql)
      statements[text.rawValue] = new
      return new
    }

    func prepared(_ save: SaveText) throws -> PreparedStatement {
      if let known = saves[save.index] { return known.begin() }
      let new = try prepared(save.sql)
      saves[save.index] = new
      return new
    }

    func prepared(_ sql: String) throws -> PreparedStatement {
      PreparedStatement(try db.cachedStatement(sql: sql))
    }

    /// The work of all statements, in steps of SQLite's virtual machine; for tests.
    var workDone: Int { (statements + saves).reduce(0) { $0 + ($1?.workDone ?? 0) } }

    // MARK: The transaction

    /// Begins a write transaction. Waits for other processes now, so that later statements do not have to.
    func begin() throws {
      try prepared(.begin).run()
      let version = try readVersion()
      if version != dataVersion { forget() }
      dataVersion = version
      // What happened before the first transaction of a store is no news to it.
      if known == nil { known = (try newsOfOthers(), version) }
    }

    /// Saves the counts of each phase and commits.
    func commit() throws {
      defer {
        gains.removeAll(keepingCapacity: true)
        lastGeneration = nil
        hasNews = false
      }
      for (phase, gain) in gains where gain != 0 {
        let statement = try prepared(.gain)
        statement.bind(phase.rawValue)
        statement.bind(Int64(gain))
        try statement.run()
      }
      if let lastGeneration {
        let statement = try prepared(.setLastGeneration)
        statement.bind(lastGeneration)
        try statement.run()
      }
      if hasNews { try prepared(.countNews).run() }
      try prepared(.commit).run()
      if hasNews { ownNews += 1 }
    }

    // MARK: Changes by others

    /// Notes that this transaction has made a change that other processes have to notice.
    func noteNews(_ isNews: Bool = true) { hasNews = hasNews || isNews }

    /// Whether others have committed a change that concerns this process since the last look. Only the version of the
    /// file is read, unless another connection has written meanwhile.
    func lookForNews() throws -> Bool {
      guard let known else { return false }
      // Read first: a change between the two is found at the next look.
      let version = try readVersion()
      guard version != known.version else { return false }
      let news = try newsOfOthers()
      self.known = (news, version)
      return news != known.news
    }

    private func readVersion() throws -> Int64 { try prepared(.dataVersion).first { $0.int64() } ?? 0 }

    private func newsOfOthers() throws -> Int64 { try (prepared(.news).first { $0.int64() } ?? 0) - ownNews }

    /// Rolls the transaction back, unless SQLite has done so already.
    func rollBack() {
      gains.removeAll(keepingCapacity: true)
      lastGeneration = nil
      hasNews = false
      forget()
      guard db.hasTransaction else { return }
      // If this fails, too, the connection's next "begin" fails.
      _ = try? prepared(.rollBack).run()
    }

    /// Makes a change that is undone if it fails.
    ///
    /// - Parameter usesSavepoint: `false` if a failed change needs no savepoint to be undone.
    func isolated<Value>(_ usesSavepoint: Bool, _ change: () throws -> Value) throws -> Value {
      let before = (gains, hasNews)
      do {
        guard usesSavepoint else { return try change() }
        try prepared(.savepoint).run()
        let value = try change()
        try prepared(.release).run()
        return value
      } catch {
        (gains, hasNews) = before
        forget()
        guard usesSavepoint, db.hasTransaction else { throw error }
        do {
          try prepared(.rollBackToSavepoint).run()
          try prepared(.release).run()
        } catch {
          // A part of the change remains and must not be committed.
          rollBack()
        }
        throw error
      }
    }

    /// Empties the caches of tables.
    private func forget() {
      kinds.removeAll(keepingCapacity: true)
      kindNumbers.removeAll(keepingCapacity: true)
      openings.removeAll()
      laneLists.removeAll()
      ownOpening = nil
      isRankingNoted = false
    }

    /// Counts records that have changed phase; the old phase is `nil` for new records, the new one for removed records.
    ///
    /// Active records are few and are counted on demand.
    func moved(_ count: Int = 1, from old: DownloadState.Phase?, to new: DownloadState.Phase?) {
      if let old, !old.isActive { gains[old, default: 0] -= count }
      if let new, !new.isActive { gains[new, default: 0] += count }
    }

    /// Counts all records again: a damaged record does not tell in which phase it was counted.
    func recount() throws {
      gains.removeAll(keepingCapacity: true)
      try prepared(.clearTally).run()
      try prepared(.recount).run()
    }

    // MARK: Ranking

    /// The ranking for ranks that are about to be written. Deletes the name of any other ranking from the ledger.
    func rankingToWrite() throws -> Ranking {
      if !isRankingNoted {
        let statement = try prepared(.unlikeRanking)
        statement.bind(ranking.name)
        try statement.run()
        isRankingNoted = true
      }
      return ranking
    }

    func setRanking(_ ranking: Ranking) {
      self.ranking = ranking
      rankingNumber += 1
      isRankingNoted = false
    }

    // MARK: Numbers

    /// Returns a new generation. The numbers of a failed change are not reused in the same transaction.
    func nextGeneration() throws -> Int64 { try nextGeneration { $0 + 1 } }

    /// Returns a new generation, which follows from the last one.
    func nextGeneration(_ next: (_ last: Int64) -> Int64) throws -> Int64 {
      let new = next(try lastGeneration ?? prepared(.lastGeneration).first { $0.int64() } ?? 0)
      lastGeneration = new
      return new
    }

    /// Makes the last generation available again, because it was not used.
    func returnGeneration() { lastGeneration = lastGeneration.map { $0 - 1 } }

    /// The owner with the given number.
    func owner(_ opening: Int64) throws -> String {
      if let known = openings[opening] { return known }
      let row = try prepared(.opening)
      row.bind(opening)
      // Whether an owner without a name is alive cannot be told: its lease decides.
      let text = try row.first { $0.text() } ?? "opening \(opening)"
      openings[opening] = text
      return text
    }

    /// The number of this connection's owner, which other tables refer to.
    func opening() throws -> Int64 {
      if let ownOpening { return ownOpening }
      let find = try prepared(.openingNumber)
      find.bind(owner)
      let found: Int64
      if let known = try find.first({ $0.int64() }) {
        found = known
      } else {
        try tidy()
        let insert = try prepared(.insertOpening)
        insert.bind(owner)
        try insert.run()
        found = db.lastInsertedRowID
      }
      ownOpening = found
      return found
    }
  }
#endif
