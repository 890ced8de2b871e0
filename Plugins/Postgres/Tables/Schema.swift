#if Postgres
  import DownpipeColumns
  import DownpipeCore

  /// The tables of a ledger, in a schema of their own.
  ///
  /// `download` has the columns of ``RecordColumns``. Dates are seconds since 1970, so that they are read back exactly; the
  /// view `queue` shows the usual ones as times. `not_before` and `lease` are by the server's clock, and the times of changes
  /// by those of the machines that made them. Attributes that decide whether a download can be leased are in `kind`, once
  /// for all downloads that share them, so that a lease can pass over those whose host or gate has no room.
  enum Schema {
    /// The version of the tables that this program makes.
    static let version = 8
    /// The version that is noted as the oldest one that can use the tables: programs of that version work beside this one.
    /// Those before version 4 do not know of second partials: the marks of a checkpoint tell them that its bytes are not in the first.
    static let oldest = 1

    /// The columns of `download`, with their types.
    static let columns: [(name: String, type: String)] = [
      ("generation", "bigint"), ("id", "text"), ("kind", "bigint"), ("opening", "bigint"), ("phase", "text"),
      ("rank", "bytea"), ("arrival", "bigint"), ("not_before", "float8"), ("owner", "bigint"), ("lease", "float8"),
      ("created_at", "float8"), ("updated_at", "float8"), ("url", "text"), ("directory", "text"), ("file_name", "text"),
      ("attempts", "bigint"), ("bytes_fetched", "bigint"), ("ranges", "text"), ("total", "bigint"), ("etag", "text"),
      ("last_modified", "float8"), ("response_date", "float8"), ("resource", "text"), ("suggested_name", "text"),
      ("media_type", "text"), ("is_complete", "bigint"), ("steps", "text"), ("artifact_kind", "text"),
      ("artifact_path", "text"), ("artifact_name", "text"), ("artifact_size", "bigint"),
      ("artifact_media_type", "text"),
      ("artifact_modified_at", "float8"), ("error", "text"), ("awaited", "text"), ("consecutive_failures", "bigint"),
      ("repeated_failures", "bigint"), ("was_interrupted", "bigint"), ("resumed_from", "bigint"), ("marks", "text"),
      ("content_coding", "text"), ("digests", "text"), ("step_note", "text"), ("expected_size", "bigint"),
      ("maximum_size", "bigint"), ("headers", "text"), ("mirrors", "text"), ("metadata", "text"),
      ("expected_digests", "text"), ("head_start", "text"), ("added", "text"), ("paused_together", "bigint"),
      ("on_disk", "bigint"), ("size_hint", "bigint"), ("step_selection", "text"), ("name_is_fallback", "bigint"),
      ("deadline", "float8"), ("dependencies", "text"), ("waits_for", "text"), ("earlier_artifact", "text"),
      ("is_outdated", "bigint"), ("artifact_is_reused", "bigint"), ("refresh", "text"), ("refreshing", "text"),
      ("fresh_until", "float8"), ("is_named_by_server", "bigint"), ("lineage", "text"), ("pieces", "text"),
      ("versions", "text"),
      ("verified", "text"),
      ("artifact_companions", "text"),
      ("artifact_location", "text"),
    ]

    private static let types = Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.type) })

    /// The type of a column of `download`.
    static func type(of column: String) -> String { types[column] ?? "text" }

    private static let required: Set<String> = [
      "id", "kind", "opening", "phase", "rank", "arrival", "created_at", "updated_at", "url",
    ]

    /// The condition for downloads that wait and are due.
    static let isReady = "phase = 'waiting' AND not_before IS NULL AND waits_for IS NULL"
    /// The condition for downloads that wait for a time.
    static let isDelayed = "phase = 'waiting' AND not_before IS NOT NULL AND waits_for IS NULL"
    /// The condition for downloads that wait for others.
    static let isDependent = "phase = 'waiting' AND waits_for IS NOT NULL"
    static let isResting = "phase IN ('paused', 'finished', 'failed', 'cancelled')"

    /// The order of the queue.
    static let order = "rank, arrival, generation"

    /// The statements that bring the tables from each version to the next, from an empty schema on.
    static let migrations: [[String]] = [
      first, rates, dependents, versions, companions, locations + conditions, answers, deletions,
    ]

    /// The shares of rates that all workers have together. A row of `rate` is locked while its shares are divided.
    private static let rates = [
      "CREATE TABLE rate (key bigint PRIMARY KEY, name text NOT NULL)",
      """
      CREATE TABLE rate_share (
        key bigint, owner bigint, rate bigint NOT NULL, wanted bigint NOT NULL, share bigint NOT NULL,
        ends float8 NOT NULL, held bigint NOT NULL, held_ends float8 NOT NULL, PRIMARY KEY (key, owner)
      ) WITH (fillfactor = 50)
      """,
      granting("rate, rate_share"),
    ]

    /// Users that may use the tables so far may use these, too.
    private static func granting(_ tables: String) -> String {
      """
      DO $$ DECLARE name text; BEGIN
        FOR name IN
          SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
          FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
          WHERE oid = 'counted'::regclass AND privilege_type = 'INSERT'
        LOOP EXECUTE 'GRANT ALL ON \(tables) TO ' || name; END LOOP;
      END $$
      """
    }

    /// Of the last exchange of each opening, and of its last other change. An opening that has not been seen for a day may come back, so these stay.
    private static let answers = [answers(in: "answer"), granting("answer")]

    private static func answers(in table: String) -> String {
      """
      CREATE TABLE IF NOT EXISTS \(table) (opening bigint PRIMARY KEY, number bigint NOT NULL, kept text NOT NULL)
      WITH (fillfactor = 50)
      """
    }

    /// What has to be deleted on disk: ``LedgerDeletion/content``, and where.
    private static let deletions = [
      """
      CREATE TABLE IF NOT EXISTS deletion (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, location text COLLATE "C", content text NOT NULL
      )
      """,
      answers(in: "change_answer"),
      granting("deletion, change_answer"),
    ]

    /// So that all waiting downloads can be read without the others.
    private static let dependents = ["CREATE INDEX download_dependent ON download (\(order)) WHERE \(isDependent)"]

    /// New tables have the columns.
    private static let versions = adding(["versions", "verified"])
    private static let companions = adding(["artifact_companions"])
    private static let locations = adding(["artifact_location"])
    private static let conditions = ["ALTER TABLE opening ADD COLUMN IF NOT EXISTS condition text"]

    private static func adding(_ columns: [String]) -> [String] {
      columns.map { "ALTER TABLE download ADD COLUMN IF NOT EXISTS \($0) text COLLATE \"C\"" }
    }

    private static var first: [String] {
      let lines = columns.map { name, type in
        // Ids and names are compared by their bytes.
        let collation = type == "text" ? " COLLATE \"C\"" : ""
        let rule = name == "generation" ? " PRIMARY KEY" : required.contains(name) ? " NOT NULL" : ""
        return "\(name) \(type)\(collation)\(rule)"
      }
      return [
        "CREATE TABLE setting (name text PRIMARY KEY, value text NOT NULL)",
        """
        CREATE TABLE opening (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          owner text NOT NULL UNIQUE,
          opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
          seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """,
        // Tags and hosts can be longer than an entry of an index may be.
        """
        CREATE TABLE kind (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          digest bytea NOT NULL UNIQUE,
          host text NOT NULL, location text, intent text NOT NULL, priority bigint NOT NULL, tags text[] NOT NULL
        )
        """,
        "CREATE INDEX kind_host ON kind (left(host, 200))",
        "CREATE TABLE tally (phase text, shard bigint, count bigint NOT NULL, PRIMARY KEY (phase, shard))",
        "CREATE TABLE tag (tag text COLLATE \"C\" NOT NULL, generation bigint NOT NULL)",
        "CREATE INDEX tag_text ON tag (left(tag, 200), generation)",
        "CREATE INDEX tag_generation ON tag (generation)",
        """
        CREATE TABLE dependency (
          needed text COLLATE "C", generation bigint, PRIMARY KEY (needed, generation)
        )
        """,
        "CREATE INDEX dependency_generation ON dependency (generation)",
        // The leased downloads that count for limits of all workers, and some that have ended since.
        "CREATE TABLE counted (key bigint, generation bigint, PRIMARY KEY (key, generation))",
        "CREATE INDEX counted_generation ON counted (generation)",
        "CREATE SEQUENCE generation",
        // Room in the pages for the next version of a row: most changes need no new entry in an index then.
        "CREATE TABLE download (\(lines.joined(separator: ", "))) WITH (fillfactor = 80)",
        "CREATE UNIQUE INDEX download_id ON download (id)",
        "CREATE INDEX download_arrival ON download (arrival)",
        "CREATE INDEX download_ready ON download (\(order)) INCLUDE (kind) WHERE \(isReady)",
        "CREATE INDEX download_lane ON download (kind, \(order)) WHERE \(isReady)",
        "CREATE INDEX download_own ON download (opening, \(order)) WHERE \(isReady)",
        "CREATE INDEX download_delayed ON download (not_before) WHERE \(isDelayed)",
        "CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL",
        "CREATE INDEX download_resting ON download (phase, updated_at) WHERE \(isResting)",
        "CREATE INDEX download_unsettled ON download (generation) WHERE phase = 'finished' AND step_note IS NOT NULL",
        """
        CREATE VIEW queue AS
          SELECT id, phase, host, intent, priority, url, attempts, to_timestamp(not_before) AS not_before,
            opening.owner, to_timestamp(lease) AS lease, on_disk, coalesce(total, expected_size, size_hint) AS size, error,
            to_timestamp(created_at) AS created_at, to_timestamp(updated_at) AS updated_at
          FROM download JOIN kind ON kind.number = kind LEFT JOIN opening ON opening.number = download.owner
        """,
        "INSERT INTO setting VALUES ('ledger', gen_random_uuid())",
      ]
    }

    // MARK: Migrating

    /// Makes the schema and its tables, or brings them up to date. Programs that start at the same time wait for each other.
    ///
    /// - Throws: ``PostgresFault``, and `DownloadError` if a newer program has made the tables.
    static func prepare(_ name: String, _ connection: PostgresConnection) throws {
      guard (1...63).contains(name.utf8.count), name != "$user" else {
        throw DownloadError(
          .ledger,
          "the server would use another schema than “\(name.prefix(300))”: name one of 1 to 63 bytes other than $user",
          stage: PostgresFault.stage)
      }
      if try readVersion(name, connection) == version { return }
      try connection.transaction { connection in
        // A migration of many rows takes longer than any other statement.
        _ = try connection.run("SET LOCAL statement_timeout = 0", prepares: false)
        _ = try connection.run("SELECT pg_advisory_xact_lock(\(lock), hashtext($1))", [.text(name)])
        let found = try readVersion(name, connection)
        if found == 0 {
          _ = try connection.run("CREATE SCHEMA IF NOT EXISTS \(quoted(name))", prepares: false)
        }
        guard found < version else { return }
        for statement in migrations[found...].joined() { _ = try connection.run(statement, prepares: false) }
        for (setting, value) in [("version", version), ("oldest version", oldest)] {
          _ = try connection.run(
            "INSERT INTO setting VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [.text(setting), .text("\(value)")])
        }
      }
    }

    /// Checks that there are tables that this program can read.
    ///
    /// - Throws: ``PostgresFault``, and `DownloadError`.
    static func check(_ name: String, _ connection: PostgresConnection) throws {
      guard try readVersion(name, connection) > 0 else {
        throw DownloadError(
          .ledger, "there is no ledger in the schema “\(name)”: a program makes it that opens the ledger",
          stage: PostgresFault.stage)
      }
    }

    /// The version of the tables; 0 if there are none.
    private static func readVersion(_ name: String, _ connection: PostgresConnection) throws -> Int {
      // Not to_regclass: it answers from a cache, which does not show the tables that another program has made while this
      // one waited for its lock.
      let tables = try connection.run(
        """
        SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'setting'
        """, [.text(name)])
      guard tables.count > 0 else { return 0 }
      let rows = try connection.run(
        "SELECT name, value FROM \(quoted(name)).setting WHERE name IN ('version', 'oldest version')", prepares: false)
      let values = Dictionary(
        (0..<rows.count).map { (rows.text($0, 0) ?? "", rows.text($0, 1).flatMap { Int($0) } ?? 0) }
      ) { $1 }
      let (found, needed) = (values["version"] ?? 0, values["oldest version"] ?? 0)
      guard needed <= version else {
        throw DownloadError(
          .ledger,
          "the tables in the schema “\(name)” are of a newer version: update this program, or name another schema",
          stage: PostgresFault.stage)
      }
      return min(found, version)
    }

    /// The first number of the locks of this program.
    static let lock = 0x646f_776e
    /// The seed of the hashes of limits of all workers.
    private static let limitSeed = 0x646f_776e

    /// The hash of a limit of all workers, for its rows in `counted` and for its lock.
    static func limitHash(_ key: String) -> String { "hashtextextended(\(key), \(limitSeed))" }

    /// A name as it is written in a statement.
    static func quoted(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }
  }
#endif
