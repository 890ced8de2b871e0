#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  // Limits that hold for all workers: what counts is what is leased, so that nothing has to be given back.
  extension LedgerTables {
    /// Asks about a locked download, unless a limit of all workers is reached.
    func consider(_ found: FoundRecord, _ search: inout LeaseSearch) throws {
      guard let limits = search.request.sharedLimits, found.damage == nil else { return search.consider(found) }
      let line = found.record.candidate.withoutSize
      guard !search.skipped.contains(line) else { return }
      var keys: [String] = []
      for limit in limits(line) {
        if search.leased[limit.key] == nil { try look(at: limit, &search) }
        switch search.leased[limit.key] {
        case .count(let count)? where count < limit.most: if !keys.contains(limit.key) { keys.append(limit.key) }
        case .count?: return search.skip(line)
        case .busy?:
          // Another worker leases for this limit in this moment.
          search.passedOver = search.passedOver ?? .limit(limit.key)
          return search.skip(line)
        case nil:
          // The server's room for locks is small. Another look goes on.
          search.passedOver = search.passedOver ?? .limit(limit.key)
          search.isOver = true
          return
        }
      }
      search.consider(found, countingFor: keys)
    }

    /// The largest number of limits of all workers that one transaction locks.
    private static let mostLocks = 500

    /// Counts the leased downloads of a limit of all workers. Unless it is full, it stays locked until the end of the
    /// transaction, so that no other one leases for it.
    private func look(at limit: SharedLimit, _ search: inout LeaseSearch) throws {
      // The end of a download is announced: a full limit needs no lock.
      let count = try leased(for: limit)
      if count >= limit.most {
        search.leased[limit.key] = .count(count)
        return
      }
      guard search.locks < Self.mostLocks else { return }
      search.locks += 1
      let locked = try run("SELECT pg_try_advisory_xact_lock(\(Schema.limitHash("$1")))", limitKey(limit.key))
      // A statement of its own, which sees what was committed before the lock was free.
      search.leased[limit.key] = locked.boolean(0, 0) == true ? .count(try leased(for: limit)) : .busy
    }

    private func leased(for limit: SharedLimit) throws -> Int {
      let rows = try run(
        """
        SELECT count(*) FROM counted JOIN download USING (generation)
        WHERE key = \(Schema.limitHash("$1")) AND owner IS NOT NULL
        """, limitKey(limit.key))
      return Int(rows.integer(0, 0) ?? 0)
    }

    /// Locks are those of the database, in which other schemas may have ledgers.
    func limitKey(_ key: String) -> PostgresValue { .text(limitText(key)) }
    private func limitText(_ key: String) -> String { StoredText.stored(memory.schema + " " + key) }

    /// Notes which limits of all workers the taken downloads count for.
    func count(_ counted: [(key: String, generation: Int64)], of taken: [DownloadRecord]) throws {
      guard !taken.isEmpty, !counted.isEmpty else { return }
      // Of earlier leases.
      _ = try run("DELETE FROM counted WHERE generation = ANY($1)", .integers(taken.map(\.generation)))
      _ = try run(
        """
        INSERT INTO counted SELECT \(Schema.limitHash("key")), generation
        FROM unnest($1::text[], $2::bigint[]) AS new (key, generation) ON CONFLICT DO NOTHING
        """, .texts(counted.map { limitText($0.key) }),
        .integers(counted.map(\.generation)))
    }
  }
#endif
