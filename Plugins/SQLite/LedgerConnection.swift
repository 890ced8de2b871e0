#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  /// A connection: its statements, what it remembers of the tables, and what its transaction has moved between phases.
  /// Used on the connection's own queue only.
  final class LedgerConnection {
    let db: Database
    /// The owner that this connection writes for.
    let owner: String
    /// How this connection ranks what it adds and changes.
    private var ranking = Ranking.arrival
    /// Tells a ranking from the one that replaced it, whatever they are called.
    private(set) var rankingNumber = 0
    /// Whether the ledger's ranks are known to go by no other name than ``ranking``'s.
    private var isRankingNoted = false
    /// How many records each phase has gained, in this transaction.
    private var gains: [DownloadState.Phase: Int] = [:]
    /// By the number of the text; GRDB's own cache would hash a long text for each row.
    private var statements = [PreparedStatement?](repeating: nil, count: StatementText.allCases.count)
    private var saves = [PreparedStatement?](repeating: nil, count: SaveText.count)

    // What is remembered of the tables, until another connection has changed them.
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

    /// The compiled statement, which is kept for the next transaction.
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

    /// How much work the statements have done, in steps of SQLite's machine; for tests.
    var workDone: Int { (statements + saves).reduce(0) { $0 + ($1?.workDone ?? 0) } }

    // MARK: The transaction

    /// Begins a transaction that may write: waits for other processes now, and not in the middle.
    func begin() throws {
      try prepared(.begin).run()
      let version = try prepared(.dataVersion).first { $0.int64() } ?? 0
      if version != dataVersion { forget() }
      dataVersion = version
    }

    /// Writes the numbers of each phase and commits.
    func commit() throws {
      defer {
        gains.removeAll(keepingCapacity: true)
        lastGeneration = nil
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
      try prepared(.commit).run()
    }

    /// Undoes the transaction, unless SQLite has done so already.
    func rollBack() {
      gains.removeAll(keepingCapacity: true)
      lastGeneration = nil
      forget()
      guard db.hasTransaction else { return }
      // When even that fails, the connection's next "begin" says so.
      _ = try? prepared(.rollBack).run()
    }

    /// Makes a change whose failure leaves nothing behind.
    ///
    /// - Parameter usesSavepoint: false when the change undoes itself.
    func isolated<Value>(_ usesSavepoint: Bool, _ change: () throws -> Value) throws -> Value {
      let before = gains
      do {
        guard usesSavepoint else { return try change() }
        try prepared(.savepoint).run()
        let value = try change()
        try prepared(.release).run()
        return value
      } catch {
        gains = before
        forget()
        guard usesSavepoint, db.hasTransaction else { throw error }
        do {
          try prepared(.rollBackToSavepoint).run()
          try prepared(.release).run()
        } catch {
          // What is left of the change must not be committed.
          rollBack()
        }
        throw error
      }
    }

    /// Forgets what was remembered of the tables.
    private func forget() {
      kinds.removeAll(keepingCapacity: true)
      kindNumbers.removeAll(keepingCapacity: true)
      openings.removeAll()
      laneLists.removeAll()
      ownOpening = nil
      isRankingNoted = false
    }

    /// Notes that records have gone from one phase to another; `nil` for records that are new or forgotten.
    ///
    /// The active ones are few and are counted on demand.
    func moved(_ count: Int = 1, from old: DownloadState.Phase?, to new: DownloadState.Phase?) {
      if let old, !old.isActive { gains[old, default: 0] -= count }
      if let new, !new.isActive { gains[new, default: 0] += count }
    }

    /// Counts the phases anew: a damaged record does not tell which one it was counted in.
    func recount() throws {
      gains.removeAll(keepingCapacity: true)
      try prepared(.clearTally).run()
      try prepared(.recount).run()
    }

    // MARK: Ranking

    /// The ranking of what is about to be written; another name than its own is taken from the ledger's ranks.
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

    /// The next generation. Numbers that a failed change has used do not come again in the same transaction.
    func nextGeneration() throws -> Int64 {
      let last = try lastGeneration ?? prepared(.lastGeneration).first { $0.int64() } ?? 0
      lastGeneration = last + 1
      return last + 1
    }

    /// Notes that the last generation was not used.
    func returnGeneration() { lastGeneration = lastGeneration.map { $0 - 1 } }

    /// The owner's text.
    func owner(_ opening: Int64) throws -> String {
      if let known = openings[opening] { return known }
      let row = try prepared(.opening)
      row.bind(opening)
      // Nothing can be proved of an owner without a name, and its lease decides.
      let text = try row.first { $0.text() } ?? "opening \(opening)"
      openings[opening] = text
      return text
    }

    /// The number that stands for this connection's owner in other tables.
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
