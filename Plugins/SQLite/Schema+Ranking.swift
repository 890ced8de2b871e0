#if SQLite
  import DownpipeCore
  import GRDB

  extension Schema {
    /// The fourth version adds the request as it was last added, the name of the ranking, the number of bytes on disk,
    /// and an index of renames that a crash has interrupted.
    static func addRanking(_ db: Database) throws {
      for column in ["added TEXT", "paused_together INTEGER", "on_disk INTEGER"] {
        try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
      }
      try db.execute(
        sql: """
          CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            value TEXT NOT NULL
          ) WITHOUT ROWID;
          -- Nothing that was finished has been moved so far.
          UPDATE download SET step_note = NULL WHERE phase = 'finished' AND step_note IS NOT NULL;
          CREATE INDEX download_unsettled ON download (generation) WHERE phase = 'finished' AND step_note IS NOT NULL;
          """)
      let partials = try Row.fetchCursor(
        db, sql: "SELECT generation, ranges FROM download WHERE ranges IS NOT NULL AND phase <> 'finished'")
      var counts: [(generation: Int64, count: Int64)] = []
      while let row = try partials.next() {
        if let text = String.fromDatabaseValue(row["ranges"]), let ranges = ByteRangeSet(storedText: text) {
          counts.append((row["generation"], ranges.byteCount))
        }
      }
      let update = try db.makeStatement(sql: "UPDATE download SET on_disk = ? WHERE generation = ?")
      for (generation, count) in counts { try update.execute(arguments: [count, generation]) }
    }
  }
#endif
