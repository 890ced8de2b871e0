#if SQLite
  import GRDB

  extension Schema {
    /// Creates the tables of an empty file in their present form, in one transaction. Running all migrations, of which each
    /// is a transaction, would take a sixth of the start of a process.
    ///
    /// Another process may create them at the same time: the one that has the lock second finds a file that is not empty.
    /// - Returns: `false` for a file that has tables: it is checked, and migrated if it is old.
    static func create(in db: Database) throws -> Bool {
      guard try isEmpty(db) else { return false }
      var isCreated = false
      try db.inTransaction(.immediate) {
        guard try isEmpty(db) else { return .rollback }
        try db.execute(sql: "PRAGMA application_id = \(LedgerFile.applicationID)")
        try db.execute(sql: current)
        let insert = try db.makeStatement(sql: "INSERT INTO grdb_migrations (identifier) VALUES (?)")
        for identifier in migrator.migrations { try insert.execute(arguments: [identifier]) }
        isCreated = true
        return .commit
      }
      return isCreated
    }

    private static func isEmpty(_ db: Database) throws -> Bool {
      guard try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") == 0 else { return false }
      return try Int32.fetchOne(db, sql: "PRAGMA application_id") == 0
    }

    /// What the migrations make of an empty file, with the columns in the same order, which a test compares.
    private static let current = """
      CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
      CREATE TABLE kind (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        host TEXT NOT NULL,
        location TEXT,
        intent TEXT NOT NULL,
        priority INTEGER NOT NULL,
        tags TEXT NOT NULL
      );
      CREATE INDEX kind_content ON kind (host, location, intent, priority, tags);
      CREATE TABLE opening (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL UNIQUE, exchange INTEGER, answer TEXT
      );
      CREATE TABLE counter (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
      ) WITHOUT ROWID;
      INSERT INTO counter (name, value) VALUES ('generation', 0);
      CREATE TABLE tag (
        tag TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (tag, generation)
      ) WITHOUT ROWID;
      CREATE TABLE tally (
        phase TEXT PRIMARY KEY,
        count INTEGER NOT NULL
      ) WITHOUT ROWID;
      CREATE TABLE setting (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
      ) WITHOUT ROWID;
      CREATE TABLE dependency (
        needed TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (needed, generation)
      ) WITHOUT ROWID;
      CREATE TABLE download (
        generation INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind INTEGER NOT NULL,
        opening INTEGER NOT NULL,
        phase TEXT NOT NULL,
        rank BLOB NOT NULL,
        arrival INTEGER NOT NULL,
        not_before REAL,
        owner INTEGER,
        lease REAL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        url TEXT NOT NULL,
        directory TEXT,
        file_name TEXT,
        attempts INTEGER,
        bytes_fetched INTEGER,
        ranges TEXT,
        total INTEGER,
        etag TEXT,
        last_modified REAL,
        response_date REAL,
        resource TEXT,
        suggested_name TEXT,
        media_type TEXT,
        is_complete INTEGER,
        steps TEXT,
        artifact_kind TEXT,
        artifact_path TEXT,
        artifact_name TEXT,
        artifact_size INTEGER,
        artifact_media_type TEXT,
        artifact_modified_at REAL,
        error TEXT,
        awaited TEXT,
        consecutive_failures INTEGER,
        repeated_failures INTEGER,
        was_interrupted INTEGER,
        resumed_from INTEGER,
        marks TEXT,
        content_coding TEXT,
        digests TEXT,
        step_note TEXT,
        expected_size INTEGER,
        maximum_size INTEGER,
        headers TEXT,
        mirrors TEXT,
        metadata TEXT,
        expected_digests TEXT,
        head_start TEXT,
        added TEXT,
        paused_together INTEGER,
        on_disk INTEGER,
        size_hint INTEGER,
        step_selection TEXT,
        name_is_fallback INTEGER,
        deadline REAL,
        dependencies TEXT,
        waits_for TEXT,
        earlier_artifact TEXT,
        is_outdated INTEGER,
        artifact_is_reused INTEGER,
        refresh TEXT,
        refreshing TEXT,
        fresh_until REAL,
        is_named_by_server INTEGER,
        lineage TEXT,
        pieces TEXT,
        versions TEXT,
        verified TEXT,
        artifact_companions TEXT,
        artifact_location TEXT
      );
      CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL;
      CREATE INDEX download_arrival ON download (arrival);
      CREATE INDEX download_resting ON download (phase, updated_at)
        WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
      CREATE INDEX download_unsettled ON download (generation) WHERE phase = 'finished' AND step_note IS NOT NULL;
      CREATE INDEX download_ready ON download (opening, kind, rank, arrival, generation)
        WHERE phase = 'waiting' AND not_before IS NULL AND waits_for IS NULL;
      CREATE INDEX download_delayed ON download (not_before)
        WHERE phase = 'waiting' AND not_before IS NOT NULL AND waits_for IS NULL;
      CREATE INDEX download_dependent ON download (arrival) WHERE phase = 'waiting' AND waits_for IS NOT NULL;
      CREATE INDEX download_kind ON download (phase, kind)
        WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
      \(rateShares)
      \(deletions)
      \(changeAnswers)
      """
  }
#endif
