@_spi(Ledger) import DownpipeCore
import Foundation

// Rates that all owners of a ledger share. A ledger that cannot lease them has no rules here.
//
// The rules go by the real clock: a ledger may have one of its own. Those that need no expiry lease for so long that a
// slow machine does not matter.
extension LedgerConformance {
  func checkSharedRates(_ report: ConformanceReport) async {
    guard let one = try? await make().open(), one.leasesRates else { return }
    try? await one.close()
    await report.check("shared-rates", "the shares of all owners are never more than the rate, and become fair") {
      let ledger = try await make()
      let (first, second) = (RateUser(try await ledger.open()), RateUser(try await ledger.open()))
      try expectEqual(try await first.ask(1_000), 100, "all of the rate")
      try expectEqual(try await second.ask(1_000), 0, "nothing is free")
      try expectEqual(try await first.ask(1_000), 50, "one of two owners")
      try expectEqual(try await second.ask(1_000), 0, "the other one may not have heard of its smaller share")
      try expectEqual(try await first.ask(1_000), 50, "one of two owners")
      try expectEqual(try await second.ask(1_000), 50, "the other one")
      try expectEqual(try await first.ask(10), 10, "less than its part")
      _ = try await first.ask(10)
      try expectEqual(try await second.ask(1_000), 90, "what the other one does not want")
      try expectEqual(second.validity, .seconds(1_000), "the validity of the share of one of few owners")
    }
    await report.check("shared-rates-keys", "each key has a rate of its own, and shares come in the order of the wants")
    {
      let ledger = try await make()
      let (first, second) = (try await ledger.open(), try await ledger.open())
      let keys = ["", "b", "a", "a\u{0}b", "a'b\"c\\{}, NULL", String(repeating: "é", count: 5_000), "A", "日本"]
      func wants(_ keys: [String]) -> [RateWant] {
        keys.map { RateWant(key: $0, rate: .bytesPerSecond(Int64(10 + (keys.firstIndex(of: $0) ?? 0))), wanted: 99) }
      }
      let shares = try await first.leaseRates(wants(keys), for: .seconds(1_000), at: Date())
      try expectEqual(shares.map(\.bytesPerSecond), keys.indices.map { Int64(10 + $0) }, "each gets its rate")
      let others = try await second.leaseRates(wants(keys.reversed()), for: .seconds(1_000), at: Date())
      try expectEqual(others.map(\.bytesPerSecond), keys.map { _ in 0 }, "what the other one has left")
      try expectEqual(
        try await second.leaseRates(wants(["c"]), for: .seconds(1_000), at: Date()).map(\.bytesPerSecond), [10],
        "another key")
      try expectEqual(try await first.leaseRates([], for: .seconds(1), at: Date()), [], "no wants")
    }
    await report.check("shared-rates-expire", "a share is free when it has expired, and not before") {
      let ledger = try await make()
      let (first, second) = (try await ledger.open(), RateUser(try await ledger.open()))
      let begin = ContinuousClock.now
      let duration = Duration.milliseconds(300)
      let want = RateWant(key: RateUser.key, rate: RateUser.rate, wanted: 60)
      try expectEqual(
        try await first.leaseRates([want], for: duration, at: Date()),
        [RateShare(bytesPerSecond: 60, validity: duration)], "the share")
      var share = try await second.ask(100)
      while share == 40 {
        await Task.yield()
        share = try await second.ask(100)
      }
      try expectEqual(share, 100, "all of the rate, after some time")
      // The clocks of two machines do not have the same speed.
      try expect(begin.duration(to: .now) > duration * 0.98, "the share was given to another owner before its end")
    }
    await report.check("shared-rates-close", "the share of a store that is closed is free") {
      let ledger = try await make()
      let (first, second) = (try await ledger.open(), RateUser(try await ledger.open()))
      _ = try await RateUser(first).ask(70)
      try expectEqual(try await second.ask(100), 30, "what is free")
      try await first.close()
      try expectEqual(try await second.ask(100), 100, "all of the rate")
    }
    await report.check("shared-rates-hold", "shares of all owners hold with any number of concurrent calls") {
      let ledger = try await make()
      let stores = [try await ledger.open(), try await ledger.open(), try await ledger.open()]
      // The shares in effect, by key and owner.
      let effective = Watched<[String: [Int: Int64]]>([:])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: UInt64(number))
            for _ in 0..<40 {
              let wants = ["a", "b", "c"].shuffled(using: &generator).map { key in
                RateWant(
                  key: key, rate: .bytesPerSecond(1_000), wanted: Int64.random(in: 0...1_200, using: &generator),
                  held: effective.value[key]?[number] ?? 0)
              }
              let shares = try await store.leaseRates(wants, for: .seconds(1_000), at: Date())
              try expectEqual(shares.count, wants.count, "one share for each want")
              for (want, share) in zip(wants, shares) {
                let sum = effective.update { all in
                  all[want.key, default: [:]][number] = share.bytesPerSecond
                  return all[want.key, default: [:]].values.reduce(0, +)
                }
                try expect(sum <= 1_000, "\(sum) bytes per second are shared of a rate of 1000")
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

/// An owner that uses one shared rate, and says what it holds.
private final class RateUser {
  static let key = "rate"
  static let rate = ByteRate.bytesPerSecond(100)
  private let store: any LedgerStore
  private var share: Int64 = 0
  private(set) var validity: Duration?

  init(_ store: any LedgerStore) { self.store = store }

  func ask(_ wanted: Int64) async throws -> Int64 {
    let want = RateWant(key: Self.key, rate: Self.rate, wanted: wanted, held: share)
    let shares = try await store.leaseRates([want], for: .seconds(1_000), at: Date())
    let new = try expectValue(shares.first, "no share was returned")
    (share, validity) = (new.bytesPerSecond, new.validity)
    return share
  }
}
