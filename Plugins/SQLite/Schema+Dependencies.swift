#if SQLite
  extension Schema {
    /// The seventh version adds dependencies between downloads.
    ///
    /// `dependencies` has the ids of the request, `waits_for` those that are not met, both as JSON and NULL if empty. A
    /// row of `dependency` says that the download `generation` waits for the id `needed`, which may not exist yet: a
    /// finished download finds those that wait for it there.
    ///
    /// Downloads that wait for others leave the indexes that leases and timers read, and are in `download_dependent`
    /// instead, so that they cost neither of them anything. For downloads without dependencies nothing changes: the
    /// new columns, the table and the index have no entry for them.
    static let dependencies = """
      ALTER TABLE download ADD COLUMN dependencies TEXT;
      ALTER TABLE download ADD COLUMN waits_for TEXT;
      CREATE TABLE dependency (
        needed TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (needed, generation)
      ) WITHOUT ROWID;
      DROP INDEX download_ready;
      DROP INDEX download_delayed;
      CREATE INDEX download_ready ON download (opening, kind, rank, arrival, generation)
        WHERE phase = 'waiting' AND not_before IS NULL AND waits_for IS NULL;
      CREATE INDEX download_delayed ON download (not_before)
        WHERE phase = 'waiting' AND not_before IS NOT NULL AND waits_for IS NULL;
      CREATE INDEX download_dependent ON download (arrival) WHERE phase = 'waiting' AND waits_for IS NOT NULL;
      """
  }
#endif
