#if SQLite
  import GRDB

  /// The tables and their migrations. A released migration is never changed: add a new one instead, and its result to
  /// ``current``.
  enum Schema {
    static var migrator: DatabaseMigrator {
      var migrator = DatabaseMigrator()
      migrator.registerMigration("1: downloads") { db in
        try db.execute(sql: "PRAGMA application_id = \(LedgerFile.applicationID)")
        try db.execute(sql: downloads)
        try db.execute(sql: indexes)
      }
      migrator.registerMigration("2: proofs, what is awaited, and head starts") { db in
        for column in ["marks TEXT", "resource TEXT", "awaited TEXT", "repeated_failures INTEGER", "head_start TEXT"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("3: lanes, and steps by name") { db in try moveIntoLanes(db) }
      migrator.registerMigration("4: what was added, and whose ranks they are") { db in try addRanking(db) }
      migrator.registerMigration("5: steps of a request, hints of its size") { db in
        for column in ["size_hint INTEGER", "step_selection TEXT", "name_is_fallback INTEGER"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("6: deadlines") { db in
        try db.execute(sql: "ALTER TABLE download ADD COLUMN deadline REAL")
      }
      migrator.registerMigration("7: dependencies") { db in try db.execute(sql: dependencies) }
      migrator.registerMigration("8: artifacts that are replaced") { db in
        try db.execute(sql: "ALTER TABLE download ADD COLUMN earlier_artifact TEXT")
      }
      // Commands for a host or an intent find its resting downloads by kind.
      migrator.registerMigration("9: kinds of resting downloads") { db in
        try db.execute(
          sql: """
            CREATE INDEX download_kind ON download (phase, kind)
              WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled'
            """)
      }
      migrator.registerMigration("10: changes while an owner works, and reused files") { db in
        for column in ["is_outdated INTEGER", "artifact_is_reused INTEGER"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("11: refreshed files") { db in
        for column in ["refresh TEXT", "refreshing TEXT", "fresh_until REAL"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("12: places that a server has named, and lineage") { db in
        for column in ["is_named_by_server INTEGER", "lineage TEXT"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("13: digests of pieces") { db in
        try db.execute(sql: "ALTER TABLE download ADD COLUMN pieces TEXT")
      }
      migrator.registerMigration("14: shares of rates") { db in try db.execute(sql: rateShares) }
      migrator.registerMigration("15: versions and verified digests") { db in
        for column in ["versions TEXT", "verified TEXT"] {
          try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("16: companions of artifacts") { db in
        try db.execute(sql: "ALTER TABLE download ADD COLUMN artifact_companions TEXT")
      }
      migrator.registerMigration("17: locations of artifacts") { db in
        try db.execute(sql: "ALTER TABLE download ADD COLUMN artifact_location TEXT")
      }
      // Of the last exchange of each opening.
      migrator.registerMigration("18: answers of exchanges") { db in
        for column in ["exchange INTEGER", "answer TEXT"] {
          try db.execute(sql: "ALTER TABLE opening ADD COLUMN \(column)")
        }
      }
      migrator.registerMigration("19: what removed downloads leave, and answers of changes") { db in
        try db.execute(sql: deletions + changeAnswers)
      }
      return migrator
    }

    /// What has to be deleted on disk: ``LedgerDeletion/content``, and where.
    static let deletions = """
      CREATE TABLE deletion (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        location TEXT,
        content TEXT NOT NULL
      );
      """

    /// Of the last change of each opening that is no exchange. Not in its row: the row is written with every exchange.
    static let changeAnswers =
      "CREATE TABLE change_answer (opening INTEGER PRIMARY KEY, number INTEGER NOT NULL, kept TEXT NOT NULL);"

    /// The shares of ``RateShares``.
    static let rateShares = """
      CREATE TABLE rate_share (
        key TEXT NOT NULL,
        owner TEXT NOT NULL,
        rate INTEGER NOT NULL,
        wanted INTEGER NOT NULL,
        share INTEGER NOT NULL,
        end_time REAL NOT NULL,
        held INTEGER NOT NULL,
        held_end REAL NOT NULL,
        PRIMARY KEY (key, owner)
      ) WITHOUT ROWID;
      """

    /// Values that change often or are searched have columns; rarely used values are JSON, and NULL if empty.
    /// Times are seconds since 1970.
    private static let downloads = """
      CREATE TABLE download (
        generation INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        phase TEXT NOT NULL,
        rank BLOB NOT NULL,
        arrival INTEGER NOT NULL,
        not_before REAL,
        owner TEXT,
        lease REAL,
        attempts INTEGER NOT NULL DEFAULT 0,
        consecutive_failures INTEGER NOT NULL DEFAULT 0,
        bytes_fetched INTEGER NOT NULL DEFAULT 0,
        resumed_from INTEGER NOT NULL DEFAULT 0,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        error TEXT,
        url TEXT NOT NULL,
        host TEXT NOT NULL,
        priority INTEGER NOT NULL,
        intent TEXT,
        expected_size INTEGER,
        maximum_size INTEGER,
        directory TEXT,
        file_name TEXT,
        mirrors TEXT,
        metadata TEXT,
        tags TEXT,
        expected_digests TEXT,
        headers TEXT,
        ranges TEXT,
        total INTEGER,
        etag TEXT,
        last_modified REAL,
        response_date REAL,
        content_coding TEXT,
        suggested_name TEXT,
        media_type TEXT,
        is_complete INTEGER NOT NULL DEFAULT 0,
        digests TEXT,
        steps_completed INTEGER,
        step_note TEXT,
        artifact_kind TEXT,
        artifact_path TEXT,
        artifact_name TEXT,
        artifact_size INTEGER,
        artifact_media_type TEXT
      );
      CREATE TABLE tag (
        tag TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (tag, generation)
      ) WITHOUT ROWID;
      CREATE TABLE tally (
        phase TEXT PRIMARY KEY,
        count INTEGER NOT NULL
      ) WITHOUT ROWID;
      """

    /// A lease reads only `download_ready`, in order. Downloads that wait for a time are in `download_delayed` instead,
    /// so that they cost a lease nothing. The index includes the host, so that downloads of a host whose limit is
    /// reached are skipped without reading their rows.
    ///
    /// Each index that a change updates costs a page of the log. Active records are therefore in `download_held` only,
    /// and a checkpoint updates no index. All other records are indexed by arrival in each phase, and resting records
    /// by their last change, too. The conditions use OR because SQLite otherwise does not see that a query for one
    /// phase can use the index.
    private static let indexes = """
      CREATE INDEX download_ready ON download (rank, arrival, generation, host)
        WHERE phase = 'waiting' AND not_before IS NULL;
      CREATE INDEX download_delayed ON download (not_before)
        WHERE phase = 'waiting' AND not_before IS NOT NULL;
      CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL;
      CREATE INDEX download_arrival ON download (phase, arrival)
        WHERE phase = 'waiting' OR phase = 'paused' OR phase = 'finished' OR phase = 'failed'
          OR phase = 'cancelled';
      CREATE INDEX download_change ON download (phase, updated_at)
        WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
      """
  }
#endif
