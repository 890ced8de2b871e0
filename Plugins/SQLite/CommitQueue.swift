#if SQLite
  import DownpipeCore
  import GRDB
  import Synchronization

  /// Commits the changes that are waiting at the same time together, in the order they came.
  ///
  /// A commit costs far more than a change. While one commit is under way, changes gather; the next
  /// commit takes them all. There is no timer: a change that comes alone is committed at once. Every
  /// caller waits for its own change, so no more gather than there are callers.
  final class CommitQueue: Sendable {
    /// A change that waits for its commit.
    private struct Change: Sendable {
      /// Whether a failure leaves nothing behind, because one statement does it all.
      var isSingleStatement: Bool
      /// Makes the change; what it returns is called with the fate of the commit.
      var perform: @Sendable (LedgerConnection) throws -> (@Sendable ((any Error)?) -> Void)
      /// Told when the change failed by itself.
      var fail: @Sendable (any Error) -> Void
    }

    private struct State {
      var waiting: [Change] = []
      var isDraining = false
      var isClosed = false
    }

    private let pool: DatabasePool
    private let path: String
    private let owner: String
    private let state = Mutex(State())
    /// The writer with its statements, from the first commit on. Looking the statements up anew for each commit
    /// would cost more than running them.
    ///
    /// Safe: it is used in ``drain(_:)`` and ``forgetConnection(_:)`` alone, both on the writer's serial queue.
    nonisolated(unsafe) private var connection: LedgerConnection?

    init(pool: DatabasePool, path: String, owner: String) {
      self.pool = pool
      self.owner = owner
      self.path = path
    }

    /// Makes a change; returns when it is committed.
    ///
    /// - Parameter isSingleStatement: Whether at most one statement of the change writes: it needs no
    ///   savepoint then, since SQLite undoes a failed statement by itself.
    func commit<Value: Sendable>(
      isSingleStatement: Bool = false, _ change: @escaping @Sendable (LedgerConnection) throws -> Value
    ) async throws -> Value {
      try await withCheckedThrowingContinuation { continuation in
        enqueue(
          Change(
            isSingleStatement: isSingleStatement,
            perform: { connection in
              let value = try change(connection)
              return { failure in
                if let failure {
                  continuation.resume(throwing: failure)
                } else {
                  continuation.resume(returning: value)
                }
              }
            },
            fail: { continuation.resume(throwing: $0) }))
      }
    }

    /// Refuses changes from now on; those that are waiting are still made.
    /// - Returns: false when it was closed already.
    func close() -> Bool {
      state.withLock { state in
        defer { state.isClosed = true }
        return !state.isClosed
      }
    }

    /// Lets go of the statements, which would keep the database from being closed. Only after ``close()``; the
    /// parameter shows that this is the writer's queue.
    func forgetConnection(_ db: Database) { connection = nil }

    var isClosed: Bool { state.withLock(\.isClosed) }

    /// How many changes wait for the next commit.
    var waitingCount: Int { state.withLock(\.waiting.count) }

    /// Whether a commit is under way, and nothing waits.
    var isCommitting: Bool { state.withLock { $0.isDraining && $0.waiting.isEmpty } }

    private func enqueue(_ change: Change) {
      let (isRefused, starts) = state.withLock { state in
        if state.isClosed { return (true, false) }
        state.waiting.append(change)
        defer { state.isDraining = true }
        return (false, !state.isDraining)
      }
      if isRefused { return change.fail(LedgerFault.closed) }
      if starts { pool.asyncWriteWithoutTransaction(drain) }
    }

    /// Commits until nothing waits. Runs on the writer's own serial queue, where it may block.
    private func drain(_ db: Database) {
      let connection = connection ?? LedgerConnection(db, owner: owner)
      self.connection = connection
      while true {
        let batch = state.withLock { state in
          let batch = state.waiting
          state.waiting = []
          if batch.isEmpty { state.isDraining = false }
          return batch
        }
        if batch.isEmpty { return }
        commit(batch, connection)
      }
    }

    private func commit(_ batch: [Change], _ connection: LedgerConnection) {
      do {
        try connection.begin()
      } catch {
        let failure = LedgerFault.translate(error, path: path)
        connection.rollBack()
        for change in batch { change.fail(failure) }
        return
      }

      var outcomes: [@Sendable ((any Error)?) -> Void] = []
      outcomes.reserveCapacity(batch.count)
      /// Set when the whole transaction is lost, and with it what was done before.
      var lost: (any Error)?
      for change in batch {
        if let lost {
          change.fail(lost)
          continue
        }
        do {
          // Alone in its transaction, a change needs no savepoint: the transaction is one.
          let isIsolated = batch.count > 1 && !change.isSingleStatement
          outcomes.append(try connection.isolated(isIsolated) { try change.perform(connection) })
        } catch {
          let failure = LedgerFault.translate(error, path: path)
          // A full disk and the like end the transaction; so does a change that could not be undone.
          if !connection.db.hasTransaction || (batch.count == 1) { lost = failure }
          change.fail(failure)
        }
      }

      if lost == nil {
        do { try connection.commit() } catch { lost = LedgerFault.translate(error, path: path) }
      }
      if lost != nil { connection.rollBack() }
      for outcome in outcomes { outcome(lost) }
    }
  }
#endif
