@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

extension LedgerConformance {
  func checkLeasing(_ report: ConformanceReport) async {
    await report.check("lease-takes-over", "a leased download is transferring, has an owner and one more attempt") {
      let (_, store) = try await filled(["a"])
      let leased = try expectValue(try await store.leased(at: Self.time(1)).first, "nothing was leased")
      try expectEqual(leased.phase, .transferring, "the phase")
      try expectEqual(leased.owner, store.owner, "the owner")
      try expectEqual(leased.attempts, 1, "the attempts")
      try expectEqual(leased.updatedAt, Self.time(1), "the time of the last change")
      try expectEqual(try await store.known("a"), leased, "the record in the ledger, compared with the leased one,")
      try expectEqual(try await store.leased().count, 0, "the number of downloads that can be leased again")
    }
    await report.check("lease-in-rank-order", "downloads are leased in order of rank, equal ranks by arrival") {
      let (_, store) = try await opened()
      // All 128 bits are significant, as unsigned numbers.
      let ranks: [UInt128] = [.max, 1 << 127, 5, 5, 1 << 64, (1 << 64) - 1, 0, 1 << 63]
      try await store.rank(by: Ranking(name: "test") { Rank(value: ranks[100 - Int($0.arrival)]) })
      let additions = try ranks.indices.map { try Self.addition(DownloadID("\($0)"), order: Int64(100 - $0)) }
      _ = try await store.add(additions, at: Self.start)
      try expectEqual(
        try await store.leased().map(\.id.rawValue), ["6", "3", "2", "7", "5", "4", "1", "0"], "the order")
    }
    await report.check("select-sees-candidates", "select is called once for each candidate, in order") {
      let (_, store) = try await opened()
      var addition = try Self.addition("b", order: 2, host: "Example.ORG:81", tags: ["x", "y"])
      addition.request.priority = .high
      addition.request.intent = .prefetch
      _ = try await store.add([addition, try Self.addition("a", order: 1)], at: Self.start)
      let seen = Mutex<[Candidate]>([])
      let leased = try await store.lease(
        LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
          seen.withLock { $0.append(candidate) }
          return .skip
        })
      try expectEqual(leased.count, 0, "the number of downloads leased although all were skipped")
      let expected = [
        Candidate(host: "example.org", intent: Intent("a")),
        Candidate(host: "example.org:81", intent: .prefetch, priority: .high, tags: ["x", "y"]),
      ]
      try expectEqual(seen.withLock { $0 }, expected, "the candidates of select")
    }
    await report.check("select-sees-sizes", "select gets the size of the next download; skip leaves all sizes") {
      let (_, store) = try await opened()
      var additions = try (0..<5).map { try Self.addition(DownloadID("\($0)"), order: Int64($0)) }
      for (index, size) in ([3_000, nil, 1_000, 9_000, 2_000] as [Int64?]).enumerated() {
        additions[index].request.intent = .prefetch
        if index % 2 == 0 {
          additions[index].request.expectedSize = ByteCount(size)
        } else {
          additions[index].request.sizeHint = ByteCount(size)
        }
      }
      _ = try await store.add(additions, at: Self.start)
      let seen = Mutex<[ByteCount]>([])
      // Each lease asks anew.
      for most in [1_000, 5_000, 9_000] as [Int64] {
        _ = try await store.lease(
          LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
            seen.withLock { $0.append(candidate.size) }
            return candidate.size.bytes ?? 0 > most ? .skip : .take
          })
      }
      try expectEqual(
        seen.withLock { $0 }, [3_000, 3_000, .unknown, 1_000, 9_000, 9_000, 2_000], "the sizes that select gets")
    }
    await report.check("learned-size-is-seen", "select gets the size that a server has stated") {
      let (_, store) = try await filled(["a"])
      var record = try expectValue(try await store.leased().first, "nothing was leased")
      record.checkpoint.total = 7_000
      record.checkpoint.ranges = ByteRangeSet(0..<10)
      record.phase = .waiting
      try expect(try await store.save(record, [.state, .checkpoint], at: Self.time(1)), "the owner's save was refused")
      let seen = Mutex<[ByteCount]>([])
      _ = try await store.lease(
        LeaseRequest(now: Self.time(2), until: Self.time(60)) { candidate in
          seen.withLock { $0.append(candidate.size) }
          return .take
        })
      try expectEqual(seen.withLock { $0 }, [7_000], "the sizes that select gets")
    }
    await report.check("select-is-obeyed", "skip leaves all equal candidates, stop ends the search") {
      let (_, store) = try await opened()
      let hosts = ["one", "two", "one", "three", "two", "three", "four", "five"]
      let additions = try hosts.enumerated().map { index, host in
        var addition = try Self.addition(DownloadID("\(index)"), order: Int64(index), host: host)
        addition.request.intent = .prefetch
        return addition
      }
      _ = try await store.add(additions, at: Self.start)
      let asked = Mutex<[String]>([])
      let leased = try await store.lease(
        LeaseRequest(now: Self.start, until: Self.time(60)) { candidate in
          asked.withLock { $0.append(candidate.host) }
          switch candidate.host {
          case "one": return .skip
          case "four": return .stop
          default: return .take
          }
        })
      try expectEqual(leased.map(\.id.rawValue), ["1", "3", "4", "5"], "the downloads leased")
      try expectEqual(
        asked.withLock { $0 }, ["one", "two", "three", "two", "three", "four"], "the candidates of select")
      try expectEqual(
        try await store.leased().map(\.id.rawValue), ["0", "2", "6", "7"], "the downloads left for the next lease")
    }
    await checkHoldingAndPrecedence(report)
    await report.check("lease-once", "each download is leased once, with any number of concurrent leases") {
      let ids = (0..<60).map { DownloadID("\($0)") }
      let (ledger, first) = try await filled(ids)
      let stores = [first, try await ledger.open(), try await ledger.open()]
      let taken = try await withThrowingTaskGroup(of: [DownloadID].self) { group in
        for index in 0..<30 {
          let store = stores[index % stores.count]
          group.addTask {
            let left = Mutex(3)
            return try await store.lease(
              LeaseRequest(now: Self.start, until: Self.time(60)) { _ in
                left.withLock { left in
                  left -= 1
                  return left >= 0 ? .take : .stop
                }
              }
            ).map(\.id)
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      try expectEqual(taken.count, 60, "the number of downloads leased in total")
      try expectEqual(Set(taken), Set(ids), "the downloads leased")
    }
  }

  func checkDueTimes(_ report: ConformanceReport) async {
    await report.check("not-before-is-honoured", "a download is leased at its due time and not before") {
      let (_, store) = try await filled(["late", "now"])
      try await store.bring("late", to: .waiting) { $0.notBefore = Self.time(10) }
      try expectEqual(
        try await store.leased(at: Self.time(9.75)).map(\.id), ["now"], "the downloads leased before the due time")
      try expectEqual(
        try await store.leased(at: Self.time(10)).map(\.id), ["late"], "the downloads leased at the due time")
    }
    await report.check("due-keeps-rank", "a download that becomes due keeps its rank") {
      let (_, store) = try await filled(["first", "second", "third"])
      try await store.bring("second", to: .waiting) { $0.notBefore = Self.time(10) }
      try await store.bring("first", to: .waiting) { $0.notBefore = Self.time(20) }
      try expectEqual(
        try await store.leased(at: Self.time(20)).map(\.id), ["first", "second", "third"], "the order")
    }
    await report.check("clock-jump-is-survived", "a due time more than 400 days ahead counts as due") {
      let (_, store) = try await filled(["a", "b"])
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(401 * 86_400) }
      try await store.bring("b", to: .waiting) { $0.notBefore = Self.time(399 * 86_400) }
      try expectEqual(try await store.nextDue(after: Self.start), Self.time(399 * 86_400), "the next due time")
      try expectEqual(try await store.leased().map(\.id), ["a"], "the downloads that are due")
    }
    await report.check("next-due", "nextDue is the earliest due time after now of a waiting download") {
      let (_, store) = try await filled(["a", "b", "c", "d"])
      try expectEqual(
        try await store.nextDue(after: Self.start), nil, "the next due time when no download waits for a time")
      try await store.bring("a", to: .waiting) { $0.notBefore = Self.time(30) }
      try await store.bring("b", to: .waiting) { $0.notBefore = Self.time(10) }
      try await store.bring("c", to: .failed) { $0.notBefore = Self.time(5) }
      try expectEqual(try await store.nextDue(after: Self.start), Self.time(10), "the first due time")
      try expectEqual(try await store.nextDue(after: Self.time(10)), Self.time(30), "the next due time after the first")
      try expectEqual(try await store.nextDue(after: Self.time(30)), nil, "the next due time after the last")
    }
  }
}
