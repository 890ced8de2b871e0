#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Machines whose clocks are an hour apart from the server's.
  @Suite(.endsHangs)
  struct ClockTests {
    private static let early: @Sendable () -> Date = { Date() - 3_600 }
    private static let late: @Sendable () -> Date = { Date() + 3_600 }

    @Test(
      "No clock takes a lease that is valid for another, and any takes one that has expired", arguments: [true, false])
    func leases(isOwnerLate: Bool) async throws {
      let ledger = try TestLedger()
      let (ownClock, otherClock) = isOwnerLate ? (Self.late, Self.early) : (Self.early, Self.late)
      let owner = try await ledger.open(clock: ownClock)
      let (other, exact) = (try await ledger.open(clock: otherClock), try await ledger.open())
      let connection = try ledger.connect()
      try await owner.fill(["a"], at: ownClock())
      #expect(try await owner.leaseAll(at: ownClock(), for: 3_000).map(\.id) == ["a"])
      try connection.renameOwners()
      // The lease is by the server's clock.
      let left = "SELECT round(lease - extract(epoch FROM clock_timestamp()))::bigint FROM download"
      #expect((1...3_010).contains(try connection.number(left)))

      #expect(try await other.reclaim(at: otherClock()) == 0)
      #expect(try await exact.reclaim(at: Date()) == 0)
      #expect(try await owner.record("a")?.owner == owner.owner)

      try await owner.renewLeases(until: ownClock() + 9_000)
      #expect((5_000...9_010).contains(try connection.number(left)))
      #expect(try await other.reclaim(at: otherClock() + 5_000) == 0)
      #expect(try await exact.reclaim(at: Date() + 5_000) == 0)

      let reclaiming = isOwnerLate ? other : exact
      let clock = isOwnerLate ? otherClock : { Date() }
      #expect(try await reclaiming.reclaim(at: clock() + 9_011) == 1)
      #expect(try await other.leaseAll(at: otherClock()).map(\.owner) == [other.owner])
      for store in [owner, other, exact] { try await store.close() }
    }

    @Test("An exchange leases by the clock of its store, too")
    func exchanges() async throws {
      let ledger = try TestLedger()
      let (early, late) = (try await ledger.open(clock: Self.early), try await ledger.open(clock: Self.late))
      try await early.fill(["a"], at: Self.early())
      let now = Self.early()
      let exchange = try await early.exchange(
        [], leasing: LeaseRequest(now: now, until: now + 3_000) { _ in .take }, at: now)
      #expect(exchange.leased.map(\.id) == ["a"])
      try ledger.connect().renameOwners()
      #expect(try await late.reclaim(at: Self.late()) == 0)
      #expect(try await late.reclaim(at: Self.late() + 3_011) == 1)
      for store in [early, late] { try await store.close() }
    }

    @Test("A renewal that had to wait does not end a lease that was made meanwhile")
    func lateRenewal() async throws {
      let ledger = try TestLedger()
      let (owner, other) = (try await ledger.open(), try await ledger.open())
      let begin = Date()
      try await owner.fill(["a"], at: begin)
      #expect(try await owner.leaseAll(at: begin, for: 60).map(\.id) == ["a"])
      try ledger.connect().renameOwners()
      try await owner.renewLeases(until: begin + 30)
      #expect(try await other.reclaim(at: begin + 45) == 0)
      #expect(try await other.reclaim(at: begin + 61) == 1)
      for store in [owner, other] { try await store.close() }
    }
  }
#endif
