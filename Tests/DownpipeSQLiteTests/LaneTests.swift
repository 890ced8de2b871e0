#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeSQLite

  /// The lists of lanes that a connection caches stay correct when this store or another one changes the lanes.
  @Suite(.endsHangs)
  struct LaneTests {
    /// The model of a waiting download that the test compares with the ledger.
    private struct Waiting {
      var rank: Int64
      var arrival: Int64
      var host: String
      var store: Int
      var location: String?
      var tags: Set<String> = []
      /// The download as it was last added.
      var addedRank: Int64 = 0
      var addedHost = ""
      var isPaused = false
      var due: Date?
    }

    /// What a store's owner holds back, and by which order it leases, until the rules change.
    private struct Rule {
      var rulesVersion = 0
      var closed = ""
      var isOrdered = false

      static func precedence(of host: String) -> UInt64 { host == "host2" ? 0 : host == "host0" ? 7 : 3 }
    }

    /// With an even seed a single store makes all changes, so that no other store's changes empty its cache.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func twoStoresAgreeWithAModel(_ seed: UInt64) async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let stores = [try await ledger.open(), try await ledger.open()]
        let ranking = Ranking(name: "size") { Rank().ascending($0.size.bytes ?? 0) }
        for store in stores { try await store.rank(by: ranking) }
        var generator = SeededGenerator(seed: seed)
        var model: [DownloadID: Waiting] = [:]
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }
        var chosen: Set<DownloadID> = []
        var rules = [Rule(), Rule()]
        for step in 0..<400 {
          let now = time(Double(step))
          let index = seed % 2 == 0 ? 0 : number(0...1)
          let store = stores[index]
          // Named in every lease, some of them before they are added.
          if step % 50 == 0 {
            chosen = Set((0..<60).map { _ in DownloadID("\(number(max(0, step - 50)...step + 50))-\(number(0...2))") })
          }
          let id = model.keys.sorted().randomElement(using: &generator)
          switch number(0...9) {
          case 0, 1, 2:
            let new = (0..<number(1...3)).map { "\(step)-\($0)" }
            let additions = try new.map { name in
              let waiting = Waiting(
                rank: Int64(number(0...20)), arrival: Int64(number(0...5)), host: "host\(number(0...3))", store: index,
                location: [nil, "A", "B"][number(0...2)], tags: number(0...1) == 0 ? ["t"] : [])
              model[DownloadID(name)] = waiting
              model[DownloadID(name)]?.addedRank = waiting.rank
              model[DownloadID(name)]?.addedHost = waiting.host
              return LedgerAddition(
                request: try DownloadRequest(
                  "http://\(waiting.host)/", id: DownloadID(name), tags: waiting.tags
                ).with(\.expectedSize, ByteCount(waiting.rank)),
                arrival: waiting.arrival, location: waiting.location)
            }
            _ = try await store.add(additions, at: now)
          case 3:
            guard let id, let known = model[id] else { continue }
            // Added again, with another rank and host. Attributes that are equal to the last addition keep later
            // changes.
            let (host, rank) = ("host\(number(0...3))", Int64(number(0...20)))
            let isKept = number(0...3) == 0
            if !isKept {
              if rank != known.addedRank { model[id]?.rank = rank }
              if host != known.addedHost {
                // A download with a new URL does not wait any longer for the old one.
                if host != known.host { model[id]?.due = nil }
                model[id]?.host = host
              }
              model[id]?.addedRank = rank
              model[id]?.addedHost = host
            }
            model[id]?.store = index
            _ = try await store.add(
              [
                LedgerAddition(
                  request: try DownloadRequest(
                    "http://\(host)/", id: id, tags: known.tags
                  ).with(\.expectedSize, ByteCount(rank)),
                  arrival: 0, location: known.location, ifKnown: isKept ? .keep : .update)
              ], at: now)
          case 4:
            guard let id else { continue }
            let pauses = number(0...1) == 0
            let isAll = number(0...9) == 0
            for moved in isAll ? Array(model.keys) : [id] {
              if pauses {
                model[moved]?.isPaused = true
                model[moved]?.due = nil
              } else {
                model[moved]?.isPaused = false
                model[moved]?.due = nil
                model[moved]?.store = index
              }
            }
            _ = try await store.transition(isAll ? .all : .ids([id]), pauses ? .pause : .resume, at: now)
          case 5:
            guard let id else { continue }
            model[id] = nil
            #expect(try await store.remove(.ids([id])).map(\.id) == [id])
          case 6:
            if number(0...9) == 0 { try await store.rank(by: ranking) }
            guard let id else { continue }
            // Updated; the download stays with its opening.
            let (host, rank) = ("host\(number(0...3))", Int64(number(0...20)))
            let tags: Set<String> = number(0...1) == 0 ? ["t"] : []
            if host != model[id]?.host { model[id]?.due = nil }
            model[id]?.host = host
            model[id]?.rank = rank
            model[id]?.tags = tags
            let url = try #require(URL(string: "http://\(host)/"))
            let updated = try await store.update(id, at: now) { record in
              record.request.url = url
              record.request.expectedSize = ByteCount(rank)
              record.request.tags = tags
            }
            #expect(updated?.rank == ranking.rank(try #require(updated).rankingContext))
          default:
            let scope = [LeaseScope.own, .all, .tag("t"), .ids(chosen)][number(0...3)]
            let location = [nil, "A"][number(0...1)]
            let full = number(0...1) == 0 ? "host\(number(0...3))" : ""
            if number(0...3) == 0 {
              rules[index].rulesVersion += 1
              rules[index].closed = number(0...1) == 0 ? "host\(number(0...3))" : ""
              rules[index].isOrdered = number(0...1) == 0
            }
            let rule = rules[index]
            let ready = model.filter { id, waiting in
              if waiting.isPaused || waiting.host == full || waiting.host == rule.closed { return false }
              if let due = waiting.due, due > now { return false }
              if let location, let own = waiting.location, own != location { return false }
              switch scope {
              case .own: return waiting.store == index
              case .tag(let tag): return waiting.tags.contains(tag)
              case .ids(let ids): return ids.contains(id)
              case .all: return true
              }
            }
            let taken = Mutex(0)
            var request = LeaseRequest(now: now, until: now + 60, scope: scope, location: location) { candidate in
              if candidate.host == rule.closed { return .hold(until: nil) }
              if candidate.host == full { return .skip }
              taken.withLock { $0 += 1 }
              return .take
            }
            request.rulesVersion = rule.rulesVersion
            if rule.isOrdered { request.order = CandidateOrder(group: \.host, precedence: Rule.precedence) }
            let leased = try await store.lease(request)
            // A download that no longer waits must not be selected: it would take another one's slot.
            #expect(taken.withLock { $0 } == leased.count, "step \(step), \(scope)")
            let keys = leased.map { record in
              let place = rule.isOrdered ? UInt128(Rule.precedence(of: record.request.host)) : 0
              return [place, record.rank.value, UInt128(record.arrival), UInt128(record.generation)]
            }
            guard Set(leased.map(\.id)) == Set(ready.keys) else {
              Issue.record("step \(step), \(scope): \(leased.map(\.id).sorted()) for \(ready.keys.sorted())")
              return
            }
            #expect(keys == keys.sorted { $0.lexicographicallyPrecedes($1) }, "the order in step \(step)")
            // Some downloads wait again, at once or later; the others are finished.
            var saves: [LedgerSave] = []
            for var record in leased {
              if number(0...1) == 0 {
                record.apply(.failedForNow)
                record.notBefore = number(0...1) == 0 ? nil : now + Double(number(1...20))
                model[record.id]?.due = record.notBefore
              } else {
                record.apply(.bytesComplete)
                record.apply(.stepsComplete)
                model[record.id] = nil
              }
              saves.append(LedgerSave(record, .state))
            }
            #expect(try await store.exchange(saves, leasing: nil, at: now).saved.allSatisfy { $0 })
          }
        }
        for store in stores { try await store.close() }
      }
    }

    /// Even if the cached lanes are wrong, only waiting downloads are leased.
    @Test func whatDoesNotWaitIsNotHandedOut() async throws {
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: "\(folder)/l", owner: "me")
        _ = try await queue.commit { connection in
          for order in 0..<3 { _ = try connection.add(try addition(DownloadID("\(order)"), Int64(order)), at: start) }
          // Fills the cache of lanes.
          _ = try connection.lease(LeaseRequest(now: start, until: time(60)) { _ in .stop })
          try connection.db.execute(sql: "UPDATE download SET phase = 'paused' WHERE id = '0'")
        }
        let leased = try await queue.commit { try $0.lease(LeaseRequest(now: start, until: time(60)) { _ in .take }) }
        #expect(leased.map(\.id) == ["1", "2"])
        #expect(try await queue.commit { try $0.record("0") }?.owner == nil)
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
      }
    }

    @Test func whatIsUndoneIsForgotten() async throws {
      struct Refused: Error {}
      try await withFolder { folder in
        let pool = try LedgerFile(path: "\(folder)/l", durability: .process, lockTimeout: .seconds(5)).open()
        let queue = CommitQueue(pool: pool, path: "\(folder)/l", owner: "me")
        let all = LeaseRequest(now: start, until: time(60), scope: .own) { _ in .take }
        await #expect(throws: DownloadError.self) {
          try await queue.commit { connection in
            _ = try connection.lease(all)
            _ = try connection.add(try addition("undone"), at: start)
            throw Refused()
          }
        }
        #expect(try await queue.commit { try $0.lease(all) }.isEmpty)
        let added = try await queue.commit { try $0.add(try addition("a"), at: start) }
        #expect(added.record.generation == 1)
        #expect(try await queue.commit { try $0.lease(all) }.map(\.id) == ["a"])
        #expect(try await queue.commit { try $0.record("a") }?.owner == "me")
        try await pool.writeWithoutTransaction { queue.forgetConnection($0) }
        try pool.close()
      }
    }

    @Test func kindsAndOpeningsThatNothingNamesAreForgotten() async throws {
      try await withFolder { folder in
        let ledger = SQLiteLedger("\(folder)/l.sqlite")
        let store = try await ledger.open()
        for batch in 0..<11 {
          _ = try await store.add(
            try (0..<1_000).map { try addition(DownloadID("\(batch)-\($0)"), 0, tags: ["\(batch)-\($0)"]) }, at: start)
        }
        let left = Mutex(10_990)
        let removed = try await store.remove(.all) { _ in
          left.withLock { left in
            left -= 1
            return left >= 0
          }
        }
        #expect(removed == 10_990)
        try await store.close()
        let other = try DatabaseQueue(path: ledger.path)
        func counts() async throws -> [Int] {
          try await other.read { db in
            try ["kind", "opening"].map { try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1 }
          }
        }
        #expect(try await counts() == [11_000, 0])
        let next = try await ledger.open()
        _ = try await next.add([try addition("new")], at: start)
        #expect(try await counts() == [11, 1])
        #expect(try await next.records(DownloadQuery()).count == 11)
        try await next.close()
        try other.close()
      }
    }
  }
#endif
