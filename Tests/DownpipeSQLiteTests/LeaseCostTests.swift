#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// Downloads that wait for other users, gates or limits cost a lease nothing. Work is counted in steps of SQLite's
  /// virtual machine, which do not depend on the load of the computer.
  @Suite(.endsHangs)
  struct LeaseCostTests {
    private static let crowd = 100_000
    private static let few = 300

    /// A ledger with 300 downloads of this opening, ranked between older downloads.
    ///
    /// - Parameters:
    ///   - others: The host and the tags of the older downloads; `nil` for none.
    ///   - isOwn: Whether the same opening has added the older downloads.
    private func work(
      besides others: Candidate?, isOwn: Bool = false, tags: Set<String> = [], scope: LeaseScope = .all,
      _ select: @escaping @Sendable (Candidate) -> LeaseSelection
    ) async throws -> Int {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
        if let others {
          let left = CommitQueue(pool: pool, path: path, owner: isOwn ? "me" : "other")
          try await left.commit { connection in
            let lane = Lane(
              opening: try connection.opening(), kind: try connection.number(of: Kind(location: nil, candidate: others))
            )
            // Random ranks, between those of the 300 downloads.
            try connection.db.execute(
              sql: """
                WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)
                INSERT INTO download (id, kind, opening, phase, rank, arrival, created_at, updated_at, url)
                SELECT 'other' || n, ?, ?, 'waiting', randomblob(16), n, 0, 0, 'http://other/' FROM number
                """, arguments: [Self.crowd, lane.kind, lane.opening])
          }
          try await pool.writeWithoutTransaction { left.forgetConnection($0) }
        }
        let queue = CommitQueue(pool: pool, path: path, owner: "me")
        let ranks = (0..<Self.few).map { _ in UInt128(UInt64.random(in: 0 ... .max)) << 64 }
        let few = try ranks.indices.map { index in
          LedgerAddition(
            request: try DownloadRequest("http://few/\(index)", id: DownloadID("few\(index)"), tags: tags),
            arrival: Int64(index))
        }
        try await queue.commit { $0.setRanking(Ranking(name: "test") { Rank(value: ranks[Int($0.arrival)]) }) }
        _ = try await queue.commit { connection in for addition in few { _ = try connection.add(addition, at: start) } }
        let before = try await queue.commit { $0.workDone }
        var done: [UInt128] = []
        while done.count < Self.few {
          let left = Mutex(16)
          let request = LeaseRequest(now: start, until: time(60), scope: scope) { candidate in
            guard left.withLock({ $0 > 0 }) else { return .stop }
            let selection = select(candidate)
            if selection == .take { left.withLock { $0 -= 1 } }
            return selection
          }
          let leased = try await queue.commit { try $0.lease(request) }
          try #require(!leased.isEmpty, "only \(done.count) were leased")
          #expect(leased.allSatisfy { $0.id.rawValue.hasPrefix("few") })
          done += leased.map(\.rank.value)
        }
        #expect(done == ranks.sorted(), "downloads are leased in order of rank")
        let after = try await queue.commit { $0.workDone }
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
        return after - before
      }
    }

    @Test func whatAnotherOpeningLeftCostsNothing() async throws {
      let alone = try await work(besides: nil, scope: .own) { _ in .take }
      let beside = try await work(besides: Candidate(host: "other"), scope: .own) { _ in .take }
      #expect(Double(beside) < 1.1 * Double(alone), "\(beside) steps beside \(Self.crowd), \(alone) alone")
    }

    @Test(arguments: [
      Candidate(host: "few", tags: ["slow"]), Candidate(host: "full"),
      Candidate(host: "other", tags: ["slow", "more"]),
    ])
    func whatIsSkippedCostsNothing(_ skipped: Candidate) async throws {
      for isOwn in [true, false] {
        let select: @Sendable (Candidate) -> LeaseSelection = {
          $0.tags.contains("slow") || $0.host == "full" ? .skip : .take
        }
        let alone = try await work(besides: nil, select)
        let beside = try await work(besides: skipped, isOwn: isOwn, select)
        #expect(Double(beside) < 1.5 * Double(alone), "\(beside) steps beside \(Self.crowd), \(alone) alone")
      }
    }

    /// Named downloads are looked up once, and then cost the same as without the others.
    @Test func namedDownloadsCostLittle() async throws {
      let few = Set((0..<Self.few).map { DownloadID("few\($0)") })
      let alone = try await work(besides: nil) { _ in .take }
      for others in [Candidate(host: "other"), Candidate(host: "few")] {
        let named = try await work(besides: others, isOwn: true, scope: .ids(few)) { _ in .take }
        // The first lease looks up each of them.
        let most = alone * 3 / 2 + 50 * Self.few
        #expect(named < most, "\(named) steps, \(alone) alone")
      }
    }

    /// Downloads with a tag are found among any number of downloads without it.
    @Test func taggedDownloadsCostLittle() async throws {
      let alone = try await work(besides: nil, tags: ["t"]) { _ in .take }
      let beside = try await work(besides: Candidate(host: "few"), isOwn: true, tags: ["t"], scope: .tag("t")) { _ in
        .take
      }
      #expect(Double(beside) < 1.2 * Double(alone), "\(beside) steps beside \(Self.crowd), \(alone) alone")
    }

    /// The next download is found without reading every host.
    @Test func anyNumberOfLanesCostsLittle() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let pool = try LedgerFile(path: path, durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: path, owner: "me")
        var generator = SystemRandomNumberGenerator()
        let ranks = (0..<5_000).map { _ in Int64.random(in: 0...1_000_000, using: &generator) }
        try await queue.commit {
          $0.setRanking(Ranking(name: "test") { Rank().ascending(ranks[Int($0.arrival)]) })
        }
        for batch in 0..<10 {
          let additions = try (batch * 500..<batch * 500 + 500).map { index in
            LedgerAddition(
              request: try DownloadRequest("http://host\(index)/", id: DownloadID("\(index)")), arrival: Int64(index))
          }
          _ = try await queue.commit { connection in
            for addition in additions { _ = try connection.add(addition, at: start) }
          }
        }
        let request = { @Sendable (count: Int) in
          let left = Mutex(count)
          return LeaseRequest(now: start, until: time(60)) { _ in
            left.withLock { left in
              left -= 1
              return left >= 0 ? .take : .stop
            }
          }
        }
        var leased = try await queue.commit { try $0.lease(request(1)) }
        let before = try await queue.commit { $0.workDone }
        for _ in 0..<20 { leased += try await queue.commit { try $0.lease(request(1)) } }
        let each = try await (queue.commit { $0.workDone } - before) / 20
        #expect(each < 1_000, "\(each) steps a lease among 5,000 hosts")
        leased += try await queue.commit { try $0.lease(request(10_000)) }
        #expect(leased.map(\.rank) == ranks.sorted().map { Rank().ascending($0) })
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
      }
    }
  }
#endif
