#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Shares of rates, which the processes that use the file have together.
  extension LedgerConnection {
    func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) throws -> [RateShare] {
      let delete = try prepared(.deleteExpiredShares)
      delete.bind(now)
      try delete.run()
      return try wants.map { want in
        let before = try shares(of: want.key)
        var shares = before
        let share = shares.lease(want, to: owner, for: duration, at: now)
        // Others change only if the clock was set back.
        let known = Set(before.rows)
        for row in shares.rows where !known.contains(row) { try put(row, of: want.key) }
        return share
      }
    }

    private func shares(of key: String) throws -> RateShares {
      let statement = try prepared(.shares)
      statement.bind(key)
      var rows: [RateShares.Row] = []
      defer { statement.reset() }
      while try statement.step() {
        rows.append(
          RateShares.Row(
            owner: statement.text(), rate: statement.int64(), wanted: statement.int64(), share: statement.int64(),
            end: statement.optionalDate() ?? .distantPast, held: statement.int64(),
            heldEnd: statement.optionalDate() ?? .distantPast))
      }
      return RateShares(rows)
    }

    private func put(_ row: RateShares.Row, of key: String) throws {
      let statement = try prepared(.putShare)
      statement.bind(key)
      statement.bind(row.owner)
      statement.bind(row.rate)
      statement.bind(row.wanted)
      statement.bind(row.share)
      statement.bind(row.end)
      statement.bind(row.held)
      statement.bind(row.heldEnd)
      try statement.run()
    }

    /// Gives the shares of this connection's owner back.
    func deleteShares() throws {
      let statement = try prepared(.deleteSharesOfOwner)
      statement.bind(owner)
      try statement.run()
    }
  }
#endif
