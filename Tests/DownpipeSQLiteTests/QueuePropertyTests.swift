#if SQLite
  import DownpipeCore
  import DownpipeScheduling
  import DownpipeSQLite
  @_spi(Ledger) import DownpipeTesting
  import HangLimit
  import Testing

  /// The queue has its properties with a ledger in a file, too.
  @Suite(.endsHangs)
  struct QueuePropertyTests {
    static let policies: [any SchedulingPolicy] = [
      PriorityQueue(), PriorityQueue(ageing: .seconds(1)), ShortestFirst(assuming: 4_000), EarliestDeadlineFirst(),
    ]

    @Test("random operations", arguments: policies.indices)
    func properties(of index: Int) async throws {
      try await withFolder { folder in
        let policy = Self.policies[index]
        try await QueueProperties(ledger: { SQLiteLedger("\(folder)/\(DownloadID()).sqlite") }) { policy }
          .run(seeds: 0..<LongForm.count(4, long: 10))
      }
    }
  }
#endif
