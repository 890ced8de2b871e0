#if SQLite
  import GRDB

  extension Schema {
    /// The third version stores the attributes that decide on leases once in `kind`, refers to owners by number, stores
    /// steps by name, and puts columns that are usually NULL at the end of a row.
    static func moveIntoLanes(_ db: Database) throws {
      try db.execute(sql: "ALTER TABLE download RENAME TO old")
      try db.execute(sql: tables)
      try db.execute(sql: copy)
      for name in ["ready", "delayed", "held", "arrival", "change"] {
        try db.execute(sql: "DROP INDEX download_\(name)")
      }
      try db.execute(sql: "DROP TABLE old")
      try db.execute(sql: indexes)
    }

    /// Times are seconds since 1970. Rarely used values are JSON, and NULL if empty.
    private static let tables = """
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
        owner TEXT NOT NULL UNIQUE
      );
      CREATE TABLE counter (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
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
        head_start TEXT
      );
      """

    private static let copy = """
      INSERT INTO kind (host, intent, priority, tags)
        SELECT DISTINCT host, coalesce(intent, 'userInitiated'), priority, coalesce(tags, '') FROM old;
      INSERT INTO opening (owner) SELECT DISTINCT owner FROM old WHERE owner IS NOT NULL;
      INSERT INTO counter (name, value)
        SELECT 'generation', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'old';
      INSERT INTO download (
          generation, id, kind, opening, phase, rank, arrival, not_before, owner, lease, created_at, updated_at, url,
          directory, file_name, attempts, bytes_fetched, ranges, total, etag, last_modified, response_date, resource,
          suggested_name, media_type, is_complete, steps, artifact_kind, artifact_path, artifact_name, artifact_size,
          artifact_media_type, error, awaited, consecutive_failures, repeated_failures, resumed_from, marks,
          content_coding, digests, step_note, expected_size, maximum_size, headers, mirrors, metadata,
          expected_digests, head_start)
        SELECT
          generation, id,
          (SELECT number FROM kind WHERE host = old.host AND location IS NULL
            AND intent = coalesce(old.intent, 'userInitiated') AND priority = old.priority
            AND tags = coalesce(old.tags, '')),
          0, phase, rank, arrival, not_before, (SELECT number FROM opening WHERE owner = old.owner), lease,
          created_at, updated_at, url, directory, file_name, nullif(attempts, 0), nullif(bytes_fetched, 0), ranges,
          total, etag, last_modified, response_date, resource, suggested_name, media_type, nullif(is_complete, 0),
          -- No step has this name: how many were done says nothing of which.
          CASE WHEN steps_completed > 0 THEN '["(a step of an older version)"]' END,
          artifact_kind, artifact_path, artifact_name, artifact_size, artifact_media_type, error, awaited,
          nullif(consecutive_failures, 0), repeated_failures, nullif(resumed_from, 0), marks, content_coding, digests,
          CASE WHEN phase = 'finished' THEN step_note END, expected_size, maximum_size, headers, mirrors, metadata,
          expected_digests, head_start
        FROM old;
      """

    /// A lease reads the lanes in `download_ready`: one range for each opening and kind, in order of rank. Downloads
    /// that wait for a time are in `download_delayed` instead, so that they cost a lease nothing.
    ///
    /// Each index that a change updates costs a page of the log. Leasing and finishing a download updates only the
    /// first and the third index, and appends to the last one. The conditions use OR because SQLite otherwise does not
    /// see that a query for one phase can use the index.
    private static let indexes = """
      CREATE INDEX download_ready ON download (opening, kind, rank, arrival, generation)
        WHERE phase = 'waiting' AND not_before IS NULL;
      CREATE INDEX download_delayed ON download (not_before)
        WHERE phase = 'waiting' AND not_before IS NOT NULL;
      CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL;
      CREATE INDEX download_arrival ON download (arrival);
      CREATE INDEX download_resting ON download (phase, updated_at)
        WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
      """
  }
#endif
