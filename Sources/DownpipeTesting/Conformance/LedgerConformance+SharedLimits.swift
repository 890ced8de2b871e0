@_spi(Ledger) import DownpipeCore
import Foundation

// Limits that hold for all owners of a ledger together. A ledger that cannot count for all has no rules here.
extension LedgerConformance {
  func checkSharedLimits(_ report: ConformanceReport) async {
    guard let one = try? await make().open(), one.countsForAll else { return }
    try? await one.close()
    await report.check("shared-limits", "a limit of all owners counts the leases of all, until they end") {
      let ledger = try await make()
      let stores = [try await ledger.open(), try await ledger.open()]
      _ = try await stores[0].add(Self.hosts(["a", "a", "a", "b"]), at: Self.start)
      try expectEqual(try await Self.lease(stores[0], most: 1), ["0", "3"], "the first of each host")
      try expectEqual(try await Self.lease(stores[1], most: 1), [], "both limits are reached")
      try expectEqual(try await Self.lease(stores[1], most: 2), ["1"], "a higher limit of one owner")
      // The outcome of a run makes room.
      for (store, id) in [(stores[0], "0"), (stores[1], "1")] {
        var record = try await store.known(DownloadID(id))
        record.apply(.pause)
        _ = try await store.save(record, [.state], at: Self.time(1))
      }
      try expectEqual(try await Self.lease(stores[1], most: 1), ["2"], "after the others have ended")
    }
    await report.check("shared-limits-expire", "what a dead owner has leased counts until it is reclaimed") {
      let ledger = try await make()
      let first = try await ledger.open()
      _ = try await first.add(Self.hosts(["a", "a"]), at: Self.start)
      try expectEqual(try await Self.lease(first, most: 1), ["0"], "the first")
      try await first.close()
      let second = try await ledger.open()
      try expectEqual(try await Self.lease(second, most: 1), ["0"], "given back")
    }
    await report.check("shared-limits-hold", "limits of all owners hold with any number of concurrent leases") {
      let ledger = try await make()
      let stores = [try await ledger.open(), try await ledger.open(), try await ledger.open()]
      let hosts = (0..<60).map { "h\($0 % 3)" }
      _ = try await stores[0].add(Self.hosts(hosts), at: Self.start)
      for _ in 0..<4 {
        let taken = try await withThrowingTaskGroup(of: [(Int, String)].self) { group in
          for index in 0..<9 {
            let place = index % stores.count
            let store = stores[place]
            group.addTask { try await Self.lease(store, most: 4).map { (place, $0) } }
          }
          return try await group.reduce(into: []) { $0 += $1 }
        }
        let counts = Dictionary(grouping: taken) { hosts[Int($0.1) ?? 0] }.mapValues(\.count)
        try expectEqual(counts, ["h0": 4, "h1": 4, "h2": 4], "the leases of each host, of all owners")
        for (place, id) in taken {
          var record = try await stores[place].known(DownloadID(id))
          record.apply(.cancel)
          _ = try await stores[place].save(record, [.state], at: Self.time(1))
        }
      }
    }
  }

  private static func hosts(_ hosts: [String]) throws -> [LedgerAddition] {
    try hosts.enumerated().map { number, host in
      LedgerAddition(
        request: try DownloadRequest("https://\(host).example/\(number)", id: DownloadID("\(number)")),
        arrival: Int64(number))
    }
  }

  /// Leases as much as a limit for each host permits.
  private static func lease(_ store: any LedgerStore, most: Int) async throws -> [String] {
    var request = LeaseRequest(now: Self.start, until: Self.time(60)) { _ in .take }
    request.sharedLimits = { [SharedLimit(key: $0.host, most: most)] }
    return try await store.lease(request).map(\.id.rawValue).sorted()
  }
}
