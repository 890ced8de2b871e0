#if SQLite
  import DownpipeCore
  import GRDB

  /// A connection: its statements, and what its transaction has moved between phases. Used on the
  /// connection's own queue only.
  final class LedgerConnection {
    let db: Database
    /// How many records each phase has gained, in this transaction.
    private var gains: [DownloadState.Phase: Int] = [:]
    /// By the number of the text; GRDB's own cache would hash a long text for each row.
    private var statements = [PreparedStatement?](repeating: nil, count: StatementText.allCases.count)

    init(_ db: Database) { self.db = db }

    /// The compiled statement, which is kept for the next transaction.
    func prepared(_ text: StatementText) throws -> PreparedStatement {
      if let known = statements[text.rawValue] { return known }
      let new = try prepared(text.sql)
      statements[text.rawValue] = new
      return new
    }

    func prepared(_ sql: String) throws -> PreparedStatement {
      PreparedStatement(try db.cachedStatement(sql: sql))
    }

    // MARK: The transaction

    /// Begins a transaction that may write: waits for other processes now, and not in the middle.
    func begin() throws { try prepared(.begin).run() }

    /// Writes the numbers of each phase and commits.
    func commit() throws {
      defer { gains.removeAll(keepingCapacity: true) }
      for (phase, gain) in gains where gain != 0 {
        let statement = try prepared(.gain)
        statement.bind(phase.rawValue, 1)
        statement.bind(Int64(gain), 2)
        try statement.run()
      }
      try prepared(.commit).run()
    }

    /// Undoes the transaction, unless SQLite has done so already.
    func rollBack() {
      gains.removeAll(keepingCapacity: true)
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

    /// Notes that records have gone from one phase to another; `nil` for records that are new or forgotten.
    ///
    /// The active ones are few and are counted when somebody asks.
    func moved(_ count: Int = 1, from old: DownloadState.Phase?, to new: DownloadState.Phase?) {
      if let old, !old.isActive { gains[old, default: 0] -= count }
      if let new, !new.isActive { gains[new, default: 0] += count }
    }
  }
#endif
