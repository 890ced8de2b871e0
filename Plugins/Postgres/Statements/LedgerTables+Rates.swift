#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Shares of rates, which all workers have together: leased by the server's clock, and given back by expiry.
  extension LedgerTables {
    /// How long a worker holds up the others that is stopped in the middle of a transaction, in milliseconds. Their shares
    /// last longer.
    private static let longestHold = 3_000
    /// How long to wait for other workers, in milliseconds.
    private static let longestWait = 4_000
    /// How long this side waits for an answer. A connection that gives none is of no use, and the next call opens another one:
    /// the shares end meanwhile, and the transfers pause.
    static let patience: Duration = .seconds(6)

    func leaseRates(_ wants: [RateWant], for duration: Duration) throws -> [RateShare] {
      guard !wants.isEmpty else { return [] }
      _ = try run("SET LOCAL idle_in_transaction_session_timeout = \(Self.longestHold)")
      _ = try run("SET LOCAL lock_timeout = \(Self.longestWait)")
      let keys = try lockRates(wants.map(\.key))
      // After the locks, so that the shares of all leases before are seen, and have begun before this instant.
      let (now, found) = try shares(of: keys)
      var changed: [(key: Int64, row: RateShares.Row)] = []
      let owner = "\(memory.owner.number)"
      let leased = zip(keys, wants).map { key, want in
        let before = found[key] ?? RateShares()
        var shares = before
        let share = shares.lease(want, to: owner, for: duration, at: now)
        // Others change only if the clock of the server was set back.
        let known = Set(before.rows)
        changed += shares.rows.filter { !known.contains($0) }.map { (key, $0) }
        return share
      }
      try put(changed)
      return leased
    }

    /// Locks rates until the end of the transaction, in the order of their numbers, so that no two calls wait for each other
    /// in a circle. Locks of rows, because they need no room in the memory of the server.
    /// - Returns: The numbers of the rates, in the order of the keys.
    private func lockRates(_ keys: [String]) throws -> [Int64] {
      let rows = try run(
        """
        WITH new AS (
          SELECT number, \(Schema.limitHash("name")) AS key, name
          FROM unnest($1::text[]) WITH ORDINALITY AS given (name, number)
        ), locked AS (
          INSERT INTO rate (key, name) SELECT DISTINCT ON (key) key, name FROM new ORDER BY key
          ON CONFLICT (key) DO UPDATE SET name = excluded.name
        )
        SELECT key FROM new ORDER BY number
        """, .texts(keys.map(StoredText.stored)))
      return (0..<rows.count).map { rows.integer($0, 0) ?? 0 }
    }

    /// The time of the server, and the shares of rates.
    private func shares(of keys: [Int64]) throws -> (now: Date, shares: [Int64: RateShares]) {
      let rows = try run(
        """
        SELECT extract(epoch FROM clock_timestamp())::float8, key, owner, rate, wanted, share, ends, held, held_ends
        FROM (SELECT 1) AS one LEFT JOIN rate_share ON key = ANY($1)
        """, .integers(keys))
      var found: [Int64: [RateShares.Row]] = [:]
      for row in 0..<rows.count {
        guard let key = rows.integer(row, 1), let owner = rows.integer(row, 2) else { continue }
        found[key, default: []].append(
          RateShares.Row(
            owner: "\(owner)", rate: rows.integer(row, 3) ?? 0, wanted: rows.integer(row, 4) ?? 0,
            share: rows.integer(row, 5) ?? 0, end: Self.date(rows.real(row, 6)), held: rows.integer(row, 7) ?? 0,
            heldEnd: Self.date(rows.real(row, 8))))
      }
      return (Self.date(rows.real(0, 0)), found.mapValues { RateShares($0) })
    }

    private static func date(_ seconds: Double?) -> Date { Date(timeIntervalSince1970: seconds ?? 0) }

    private func put(_ rows: [(key: Int64, row: RateShares.Row)]) throws {
      func numbers(_ value: (RateShares.Row) -> Int64) -> PostgresValue { .integers(rows.map { value($0.row) }) }
      func times(_ value: (RateShares.Row) -> Date) -> PostgresValue {
        .texts(rows.map { "\(max(0, value($0.row).timeIntervalSince1970))" })
      }
      _ = try run(
        """
        INSERT INTO rate_share (key, owner, rate, wanted, share, ends, held, held_ends)
        SELECT * FROM unnest(
          $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[], $7::bigint[], $8::float8[])
        ON CONFLICT (key, owner) DO UPDATE SET rate = excluded.rate, wanted = excluded.wanted, share = excluded.share,
          ends = excluded.ends, held = excluded.held, held_ends = excluded.held_ends
        """, .integers(rows.map(\.key)), numbers { Int64($0.owner) ?? 0 }, numbers(\.rate), numbers(\.wanted),
        numbers(\.share), times(\.end), numbers(\.held), times(\.heldEnd))
    }

    /// Deletes the shares that have expired, and rates that no worker has used for a minute.
    func deleteExpiredShares() throws {
      _ = try run(
        """
        DELETE FROM rate_share WHERE (key, owner) IN (
          SELECT key, owner FROM rate_share
          WHERE greatest(ends, held_ends) < extract(epoch FROM clock_timestamp())::float8 - 60
          LIMIT 10000 FOR UPDATE SKIP LOCKED)
        """)
      // A lease in progress has locked its rates.
      _ = try run(
        """
        DELETE FROM rate WHERE key IN (
          SELECT key FROM rate WHERE NOT EXISTS (SELECT 1 FROM rate_share WHERE rate_share.key = rate.key)
          LIMIT 10000 FOR UPDATE SKIP LOCKED)
        """)
    }

    /// Gives the shares of this owner back.
    func deleteShares() throws {
      _ = try run("DELETE FROM rate_share WHERE owner = $1", .integer(memory.owner.number))
    }
  }
#endif
