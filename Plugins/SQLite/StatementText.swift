#if SQLite
  import DownpipeColumns
  import DownpipeCore

  /// The frequent statements. Each is compiled once for a connection.
  enum StatementText: Int, CaseIterable {
    case begin, commit, rollBack, savepoint, release, rollBackToSavepoint, dataVersion
    case gain, clearTally, recount, lastGeneration, setLastGeneration, news, countNews
    case opening, openingNumber, insertOpening, keepAnswer, answer, keepChange, lastChange, kind, kindNumber, insertKind
    case record, recordOfGeneration, work, place, total, insert, restore, rewrite, insertTag, deleteTag, deleteRow
    case isAnyDue, promoteDue, promoteJumped, nextLane, nextOwnLane, waitingKeys, lease
    case renew, held, letGo, nextDue, placeOfID, setOpening
    case isBusy, readyPlace, phaseOfID, isNeeded, dependents, waitsFor, waitsForOfID, setWaitsFor
    case insertDependency, deleteDependency
    case shares, putShare, deleteExpiredShares, deleteSharesOfOwner
    case insertDeletion, deletions, forgetDeletion
    case unlikeRanking, isRanked, setting, setSetting, clearSetting, rankPage, rankable, setRank

    /// The condition for downloads that wait and are due.
    static let isReady = "phase = 'waiting' AND not_before IS NULL AND waits_for IS NULL"
    /// The condition for downloads that wait for a time.
    static let isDelayed = "phase = 'waiting' AND not_before IS NOT NULL AND waits_for IS NULL"
    /// The condition for downloads that wait for another download.
    static let isDependent = "phase = 'waiting' AND waits_for IS NOT NULL"
    private static let placeColumns = "opening, kind, rank, arrival, generation"

    // The indexes are named because SQLite, without statistics, would choose another one and read all of it.
    var sql: String {
      switch self {
      case .begin: "BEGIN IMMEDIATE"
      case .commit: "COMMIT"
      case .rollBack: "ROLLBACK"
      case .savepoint: "SAVEPOINT change"
      case .release: "RELEASE change"
      case .rollBackToSavepoint: "ROLLBACK TO change"
      case .dataVersion: "PRAGMA data_version"

      case .gain:
        """
        INSERT INTO tally (phase, count) VALUES (?, ?)
        ON CONFLICT (phase) DO UPDATE SET count = count + excluded.count
        """
      case .clearTally: "DELETE FROM tally"
      case .recount:
        "INSERT INTO tally (phase, count) SELECT phase, count(*) FROM download WHERE owner IS NULL GROUP BY phase"
      case .lastGeneration:
        """
        SELECT max(
          coalesce((SELECT value FROM counter WHERE name = 'generation'), 0),
          coalesce((SELECT max(generation) FROM download), 0))
        """
      case .setLastGeneration: "INSERT OR REPLACE INTO counter (name, value) VALUES ('generation', ?)"
      case .news: "SELECT value FROM counter WHERE name = 'changes'"
      case .countNews:
        """
        INSERT INTO counter (name, value) VALUES ('changes', 1)
        ON CONFLICT (name) DO UPDATE SET value = value + 1
        """

      case .opening: "SELECT owner FROM opening WHERE number = ?"
      case .openingNumber: "SELECT number FROM opening WHERE owner = ?"
      case .insertOpening: "INSERT INTO opening (owner) VALUES (?)"
      case .keepAnswer: "UPDATE opening SET exchange = ?, answer = ? WHERE number = ?"
      case .answer: "SELECT answer FROM opening WHERE number = ? AND exchange = ?"
      case .keepChange: "INSERT OR REPLACE INTO change_answer (number, kept, opening) VALUES (?, ?, ?)"
      case .lastChange: "SELECT kept FROM change_answer WHERE opening = ? AND number = ?"
      case .kind: "SELECT location, host, intent, priority, tags FROM kind WHERE number = ?"
      case .kindNumber:
        "SELECT number FROM kind WHERE host = ? AND location IS ? AND intent = ? AND priority = ? AND tags = ?"
      case .insertKind: "INSERT INTO kind (host, location, intent, priority, tags) VALUES (?, ?, ?, ?, ?)"

      case .record: "SELECT \(RecordColumns.list) FROM download WHERE id = ?"
      case .recordOfGeneration: "SELECT \(RecordColumns.list) FROM download WHERE generation = ?"
      case .work: "SELECT \(RecordColumns.names(RecordColumns.work)) FROM download WHERE generation = ?"
      case .place: "SELECT \(Self.placeColumns) FROM download WHERE generation = ?"
      case .total: "SELECT total FROM download WHERE generation = ?"
      case .insert:
        """
        INSERT INTO download (\(RecordColumns.names(RecordColumns.new)), kind, opening)
        VALUES (\(RecordColumns.new.map { _ in "?" }.joined(separator: ", ")), ?, ?)
        ON CONFLICT (id) DO NOTHING
        """
      case .restore:
        """
        INSERT INTO download (\(RecordColumns.names(RecordColumns.all)), kind, opening)
        VALUES (\(RecordColumns.all.map { _ in "?" }.joined(separator: ", ")), ?, ?)
        """
      case .rewrite:
        """
        UPDATE download SET \(RecordColumns.assignments(RecordColumns.changing)), kind = ?, opening = ?
        WHERE generation = ?
        """
      case .insertTag: "INSERT OR IGNORE INTO tag (tag, generation) VALUES (?, ?)"
      case .deleteTag: "DELETE FROM tag WHERE tag = ? AND generation = ?"
      case .deleteRow: "DELETE FROM download WHERE generation = ?"

      case .isAnyDue:
        """
        SELECT EXISTS (SELECT 1 FROM download INDEXED BY download_delayed WHERE \(Self.isDelayed) AND not_before <= ?)
        OR EXISTS (SELECT 1 FROM download INDEXED BY download_delayed WHERE \(Self.isDelayed) AND not_before > ?)
        """
      case .promoteDue:
        """
        UPDATE download INDEXED BY download_delayed SET not_before = NULL
        WHERE \(Self.isDelayed) AND not_before <= ? RETURNING \(Self.placeColumns)
        """
      case .promoteJumped:
        """
        UPDATE download INDEXED BY download_delayed SET not_before = NULL
        WHERE \(Self.isDelayed) AND not_before > ? RETURNING \(Self.placeColumns)
        """
      // Not “>”: SQLite would start at the equal keys and read the whole lane.
      case .nextLane:
        """
        SELECT opening, kind FROM download INDEXED BY download_ready
        WHERE \(Self.isReady) AND (opening, kind) >= (?, ?) ORDER BY opening, kind LIMIT 1
        """
      case .nextOwnLane:
        """
        SELECT opening, kind FROM download INDEXED BY download_ready
        WHERE \(Self.isReady) AND opening = ? AND kind >= ? ORDER BY kind LIMIT 1
        """
      case .waitingKeys:
        """
        SELECT rank, arrival, generation FROM download INDEXED BY download_ready
        WHERE \(Self.isReady) AND opening = ? AND kind = ? AND (rank, arrival, generation) > (?, ?, ?)
        ORDER BY rank, arrival, generation LIMIT ?
        """
      case .lease:
        """
        UPDATE download SET \(EventEffect.lease?.assignments ?? ""),
          owner = ?, lease = ?, updated_at = ?
        WHERE generation = ? AND phase = 'waiting' AND owner IS NULL AND waits_for IS NULL
        """

      case .renew: "UPDATE download SET lease = ? WHERE owner = ?"
      case .held: "SELECT owner, lease, phase, generation, is_outdated FROM download WHERE owner IS NOT NULL"
      case .letGo: "UPDATE download SET owner = NULL, lease = NULL WHERE generation = ?"
      case .placeOfID: "SELECT \(Self.placeColumns), \(Self.isReady) FROM download WHERE id = ?"
      case .setOpening: "UPDATE download SET opening = ? WHERE generation = ?"

      case .isBusy:
        """
        SELECT EXISTS (SELECT 1 FROM download INDEXED BY download_held WHERE owner IS NOT NULL)
        OR EXISTS (SELECT 1 FROM download INDEXED BY download_ready WHERE \(Self.isReady))
        OR EXISTS (SELECT 1 FROM download INDEXED BY download_delayed WHERE \(Self.isDelayed))
        """
      case .readyPlace: "SELECT \(Self.placeColumns) FROM download WHERE generation = ? AND \(Self.isReady)"
      case .phaseOfID: "SELECT phase FROM download WHERE id = ?"
      case .isNeeded: "SELECT 1 FROM dependency WHERE needed = ? LIMIT 1"
      case .dependents: "SELECT generation FROM dependency WHERE needed = ?"
      case .waitsFor: "SELECT waits_for FROM download WHERE generation = ?"
      case .waitsForOfID: "SELECT waits_for FROM download WHERE id = ?"
      case .setWaitsFor: "UPDATE download SET waits_for = ?, updated_at = ? WHERE generation = ?"
      case .insertDependency: "INSERT OR IGNORE INTO dependency (needed, generation) VALUES (?, ?)"
      case .deleteDependency: "DELETE FROM dependency WHERE needed = ? AND generation = ?"

      case .shares: "SELECT owner, rate, wanted, share, end_time, held, held_end FROM rate_share WHERE key = ?"
      case .putShare:
        """
        INSERT OR REPLACE INTO rate_share (key, owner, rate, wanted, share, end_time, held, held_end)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """
      case .deleteExpiredShares: "DELETE FROM rate_share WHERE end_time <= ?1 AND held_end <= ?1"
      case .deleteSharesOfOwner: "DELETE FROM rate_share WHERE owner = ?"

      case .insertDeletion: "INSERT INTO deletion (location, content) VALUES (?, ?) RETURNING number"
      case .deletions:
        """
        SELECT number, content FROM deletion WHERE number BETWEEN ? AND ? AND location IS ? ORDER BY number LIMIT ?
        """
      case .forgetDeletion: "DELETE FROM deletion WHERE number = ?"

      case .unlikeRanking: "DELETE FROM setting WHERE name IN ('ranking', 'ranking under way') AND value <> ?"
      case .isRanked: "SELECT 1 FROM setting WHERE name = ? AND value = ?"
      case .setting: "SELECT value FROM setting WHERE name = ?"
      case .setSetting: "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)"
      case .clearSetting: "DELETE FROM setting WHERE name = ?"
      case .rankPage:
        """
        SELECT generation FROM download NOT INDEXED
        WHERE generation > ? AND phase <> 'finished' ORDER BY generation LIMIT ?
        """
      case .rankable:
        "SELECT \(RecordColumns.names(RecordColumns.ranking)), kind, owner, kind FROM download WHERE generation = ?"
      case .setRank: "UPDATE download SET rank = ? WHERE generation = ?"
      case .nextDue:
        "SELECT min(not_before) FROM download INDEXED BY download_delayed WHERE \(Self.isDelayed) AND not_before > ?"
      }
    }
  }
#endif
