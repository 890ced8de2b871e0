#if SQLite
  import DownpipeCore

  /// The statements that are run often. Each is compiled once a connection.
  enum StatementText: Int, CaseIterable {
    case begin, commit, rollBack, savepoint, release, rollBackToSavepoint, gain
    case record, recordOfGeneration, insert, updateRequest, waitAgain, clearProgress
    case insertTag, deleteTag
    case isAnyDue, promoteDue, promoteJumped, ready, claim
    case tags, touch, saveState, saveCheckpoint, saveSteps
    case saveStateCheckpoint, saveStateSteps, saveCheckpointSteps, saveStateCheckpointSteps
    case saveLink, clearAwaited
    case renew, active, giveBack, delete, rankPage, rerank, nextDue

    var sql: String {
      switch self {
      case .begin: "BEGIN IMMEDIATE"
      case .commit: "COMMIT"
      case .rollBack: "ROLLBACK"
      case .savepoint: "SAVEPOINT change"
      case .release: "RELEASE change"
      case .rollBackToSavepoint: "ROLLBACK TO change"
      case .gain:
        """
        INSERT INTO tally (phase, count) VALUES (?1, ?2)
        ON CONFLICT (phase) DO UPDATE SET count = count + excluded.count
        """

      case .record: "SELECT \(RecordColumns.list) FROM download WHERE id = ?1"
      case .recordOfGeneration: "SELECT \(RecordColumns.list) FROM download WHERE generation = ?1"
      case .insert:
        """
        INSERT INTO download (id, phase, rank, arrival, created_at, updated_at, \(RecordColumns.request))
        VALUES (?1, 'waiting', ?2, ?3, ?4, ?4, \(RecordColumns.requestPlaceholders(from: 5)))
        ON CONFLICT (id) DO NOTHING
        """
      case .updateRequest:
        """
        UPDATE download SET rank = ?2, updated_at = ?3, \(RecordColumns.requestAssignments(from: 5))
        WHERE generation = ?1
        """
      case .waitAgain:
        """
        UPDATE download SET phase = 'waiting', not_before = NULL, error = NULL, consecutive_failures = 0, repeated_failures = NULL
        WHERE generation = ?1
        """
      case .clearProgress: "UPDATE download SET \(RecordColumns.clearedProgress) WHERE generation = ?1"

      case .insertTag: "INSERT OR IGNORE INTO tag (tag, generation) VALUES (?1, ?2)"
      case .deleteTag: "DELETE FROM tag WHERE tag = ?1 AND generation = ?2"

      // The indexes are named because without statistics SQLite would take another one, and read it all.
      case .isAnyDue:
        """
        SELECT EXISTS (
          SELECT 1 FROM download INDEXED BY download_delayed
          WHERE phase = 'waiting' AND not_before IS NOT NULL AND not_before <= ?1)
        OR EXISTS (
          SELECT 1 FROM download INDEXED BY download_delayed
          WHERE phase = 'waiting' AND not_before IS NOT NULL AND not_before > ?2)
        """
      case .promoteDue:
        """
        UPDATE download INDEXED BY download_delayed SET not_before = NULL
        WHERE phase = 'waiting' AND not_before IS NOT NULL AND not_before <= ?1
        """
      case .promoteJumped:
        """
        UPDATE download INDEXED BY download_delayed SET not_before = NULL
        WHERE phase = 'waiting' AND not_before IS NOT NULL AND not_before > ?1
        """
      case .ready:
        """
        SELECT generation, host FROM download INDEXED BY download_ready
        WHERE phase = 'waiting' AND not_before IS NULL ORDER BY rank, arrival, generation
        """
      case .claim:
        """
        UPDATE download SET phase = 'transferring', owner = ?2, lease = ?3, attempts = attempts + 1, updated_at = ?4
        WHERE generation = ?1
        """

      case .tags: "SELECT tags FROM download WHERE generation = ?1"
      case .touch: Self.save([])
      case .saveState: Self.save(.state)
      case .saveCheckpoint: Self.save(.checkpoint)
      case .saveSteps: Self.save(.steps)
      case .saveStateCheckpoint: Self.save([.state, .checkpoint])
      case .saveStateSteps: Self.save([.state, .steps])
      case .saveCheckpointSteps: Self.save([.checkpoint, .steps])
      case .saveStateCheckpointSteps: Self.save([.state, .checkpoint, .steps])

      case .saveLink: "UPDATE download SET url = ?2, host = ?3, headers = ?4, head_start = ?5 WHERE generation = ?1"

      case .clearAwaited: "UPDATE download SET awaited = NULL WHERE generation = ?1"

      case .renew: "UPDATE download SET lease = ?2 WHERE owner = ?1"
      case .active: "SELECT generation, phase, owner, lease FROM download WHERE owner IS NOT NULL"
      case .giveBack:
        """
        UPDATE download SET phase = 'waiting', not_before = NULL, owner = NULL, lease = NULL,
          updated_at = coalesce(?2, updated_at)
        WHERE generation = ?1
        """
      case .delete: "DELETE FROM download WHERE generation = ?1"
      case .rankPage:
        """
        SELECT generation, arrival, rank, id, priority, intent, created_at, expected_size FROM download
        WHERE phase = 'waiting' AND (arrival, generation) > (?1, ?2) ORDER BY arrival, generation LIMIT 1000
        """
      case .rerank: "UPDATE download SET rank = ?2 WHERE generation = ?1"
      case .nextDue:
        """
        SELECT min(not_before) FROM download INDEXED BY download_delayed
        WHERE phase = 'waiting' AND not_before IS NOT NULL AND not_before > ?1
        """
      }
    }

    /// One statement writes what a save names, and finds out whether the owner holds the record.
    private static func save(_ fields: RecordFields) -> String {
      "UPDATE download SET \(RecordColumns.assignments(fields)) WHERE generation = ?1 AND id = ?2 AND owner = ?3"
    }

    /// The statement that saves the fields, apart from the request.
    init(saving fields: RecordFields) {
      switch (fields.contains(.state), fields.contains(.checkpoint), fields.contains(.steps)) {
      case (false, false, false): self = .touch
      case (true, false, false): self = .saveState
      case (false, true, false): self = .saveCheckpoint
      case (false, false, true): self = .saveSteps
      case (true, true, false): self = .saveStateCheckpoint
      case (true, false, true): self = .saveStateSteps
      case (false, true, true): self = .saveCheckpointSteps
      case (true, true, true): self = .saveStateCheckpointSteps
      }
    }
  }
#endif
