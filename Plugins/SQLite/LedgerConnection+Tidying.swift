#if SQLite
  import DownpipePOSIX
  import GRDB

  extension LedgerConnection {
    /// Deletes the openings of ended processes and unused kinds, once there are many of them.
    func tidy() throws {
      let openings = try prepared(
        """
        SELECT number, owner FROM opening
        WHERE number NOT IN (SELECT owner FROM download WHERE owner IS NOT NULL)
          AND (SELECT count(*) FROM opening) > 100
        """)
      var gone: [Int64] = []
      do {
        defer { openings.reset() }
        while try openings.step() {
          let number = openings.int64()
          if ProcessOwner(openings.text())?.standing == .gone { gone.append(number) }
        }
      }
      for number in gone { try forgetOpening(number) }

      // Reading every download is only worth it if there are not many more downloads than kinds.
      let isWorthIt = try prepared(
        """
        SELECT (SELECT count(*) FROM kind) AS kinds,
          coalesce((SELECT value FROM counter WHERE name = 'kinds kept'), 0) AS kept,
          CAST((SELECT total(count) FROM tally) AS INTEGER) AS downloads
        """)
      let numbers = try isWorthIt.first { (kinds: $0.int64(), kept: $0.int64(), downloads: $0.int64()) }
      guard let numbers, numbers.kinds > 10_000 + 2 * numbers.kept, numbers.downloads < 4 * numbers.kinds else {
        return
      }
      try prepared("DELETE FROM kind WHERE number NOT IN (SELECT kind FROM download)").run()
      try prepared("INSERT OR REPLACE INTO counter (name, value) SELECT 'kinds kept', count(*) FROM kind").run()
    }

    private func forgetOpening(_ number: Int64) throws {
      for sql in ["DELETE FROM opening WHERE number = ?", "DELETE FROM change_answer WHERE opening = ?"] {
        let statement = try prepared(sql)
        statement.bind(number)
        try statement.run()
      }
    }

    /// Gives back the downloads and shares of rates that this owner holds, and deletes its opening.
    /// - Returns: The number of downloads that were given back.
    func leave() throws -> Int {
      let own = try opening()
      let count = try giveBack(at: nil) { owner, _ in owner == own }
      try forgetOpening(own)
      try deleteShares()
      return count
    }
  }
#endif
