#if SQLite
  import DownpipeCore
  import GRDB
  import Synchronization

  /// Commits concurrent changes together, in the order of the calls.
  ///
  /// A commit costs far more than a change. During a commit new changes are collected, and the next commit takes all of
  /// them. There is no timer: a single change is committed at once. Every caller waits for its own change, so the
  /// number of collected changes is at most the number of callers.
  final class CommitQueue: Sendable {
    /// A change that waits for its commit.
    private struct Change: Sendable {
      /// Makes the change, and returns a closure to be called after the commit, with its error if it failed.
      var perform: @Sendable (LedgerConnection) throws -> (@Sendable ((any Error)?) -> Void)
      /// Called with the error if the change itself failed.
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
    /// The writer with its statements, from the first commit on. Looking up the statements for each commit would cost
    /// more than running them.
    ///
    /// Safe: it is only used in ``drain(_:)``, ``look(_:)`` and ``forgetConnection(_:)``, all on the writer's serial queue.
    nonisolated(unsafe) private var connection: LedgerConnection?

    init(pool: DatabasePool, path: String, owner: String) {
      self.pool = pool
      self.owner = owner
      self.path = path
    }

    /// Makes a change and returns when it has been committed.
    func commit<Value: Sendable>(
      _ change: @escaping @Sendable (LedgerConnection) throws -> Value
    ) async throws -> Value {
      try await withCheckedThrowingContinuation { continuation in
        enqueue(
          Change(
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

    /// Reads on the writer's connection, outside of a transaction and after the changes that wait. Only this connection
    /// can tell the commits of others from its own.
    ///
    /// - Returns: The result; `false` if nothing has been committed yet.
    func look(_ body: @escaping @Sendable (LedgerConnection) throws -> Bool) async throws -> Bool {
      guard !isClosed else { throw LedgerFault.closed }
      let path = path
      return try await withCheckedThrowingContinuation { continuation in
        pool.asyncWriteWithoutTransaction { [self] _ in
          do {
            continuation.resume(returning: try connection.map(body) ?? false)
          } catch {
            continuation.resume(throwing: LedgerFault.translate(error, path: path))
          }
        }
      }
    }

    /// Rejects further changes. Changes that wait already are still committed.
    /// - Returns: `false` if the queue was closed already.
    func close() -> Bool {
      state.withLock { state in
        defer { state.isClosed = true }
        return !state.isClosed
      }
    }

    /// Releases the statements, because the database cannot be closed while they exist. Call it after ``close()``; the
    /// parameter proves that the call is on the writer's queue.
    func forgetConnection(_ db: Database) { connection = nil }

    var isClosed: Bool { state.withLock(\.isClosed) }

    /// The number of changes that wait for the next commit.
    var waitingCount: Int { state.withLock(\.waiting.count) }

    /// Whether a commit is in progress and no change waits.
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

    /// Commits until no change waits. Runs on the writer's serial queue, where it may block.
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
      /// The error that ended the whole transaction, and with it the earlier changes.
      var lost: (any Error)?
      for change in batch {
        if let lost {
          change.fail(lost)
          continue
        }
        do {
          // A change that is alone in its transaction needs no savepoint: the transaction can be rolled back.
          outcomes.append(try connection.isolated(batch.count > 1) { try change.perform(connection) })
        } catch {
          let failure = LedgerFault.translate(error, path: path)
          // A full disk, for example, ends the transaction, and so does a change that could not be undone.
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
