#if SQLite
  import GRDB

  /// The tables. A migration, once released, is never changed: add another one.
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
      return migrator
    }

    /// Columns for what changes often or is searched; JSON for what is rarely used, NULL when it is empty.
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

    /// Leases read `download_ready` in order, and nothing else, until they have enough. What waits for a
    /// time is in `download_delayed` instead, so that any number of it costs leases nothing. The host
    /// is in the index so that downloads of a host that is full are passed over without reading them.
    ///
    /// Every index that a change touches costs a page of the log. Active records are therefore in
    /// `download_held` alone, and a checkpoint touches none; those that may be many are in the order of arrival,
    /// a phase at a time, and those that rest in the order of their last change too. The conditions are spelled
    /// out with OR because only so SQLite sees that one phase fulfils them.
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
