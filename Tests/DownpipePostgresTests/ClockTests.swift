#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import HangLimit
  import Synchronization
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

    // MARK: Due times

    /// The seconds until the download is due, by the server's clock.
    private static let wait = "SELECT round(not_before - extract(epoch FROM clock_timestamp()))::bigint FROM download"

    @Test("What one machine delays is due for all at the same moment", arguments: [true, false])
    func delays(isOwnerLate: Bool) async throws {
      let ledger = try TestLedger()
      let (ownClock, otherClock) = isOwnerLate ? (Self.late, Self.early) : (Self.early, Self.late)
      let (owner, other) = (try await ledger.open(clock: ownClock), try await ledger.open(clock: otherClock))
      let exact = try await ledger.open()
      try await owner.fill(["a"], at: ownClock())
      try await owner.delayAll(by: 600, at: ownClock())
      let connection = try ledger.connect()
      #expect((500...610).contains(try connection.number(Self.wait)))

      // Each machine shows it by its own clock.
      let machines: [(store: PostgresLedgerStore, clock: @Sendable () -> Date)] = [
        (owner, ownClock), (other, otherClock), (exact, { Date() }),
      ]
      for (store, clock) in machines {
        let due = try #require(try await store.record("a")?.notBefore)
        #expect((500...610).contains(due.timeIntervalSince(clock())))
        let next = try #require(try await store.nextDue(after: clock()))
        #expect(next == due)
        #expect(try await store.leaseAll(at: clock()).isEmpty)
        #expect(try await store.nextDue(after: due) == nil)
      }
      #expect(try await other.leaseAll(at: otherClock() + 700).map(\.id) == ["a"])
      for (store, _) in machines { try await store.close() }
    }

    @Test("A machine whose clock is an hour ahead makes nothing due that others have delayed")
    func promotions() async throws {
      let ledger = try TestLedger()
      let (exact, late) = (try await ledger.open(), try await ledger.open(clock: Self.late))
      let ids = (0..<20).map { DownloadID("\($0)") }
      try await exact.fill(ids)
      try await exact.delayAll(by: 600)
      let now = Self.late()
      let exchange = try await late.exchange(
        [], leasing: LeaseRequest(now: now, until: now + 3_000) { _ in .take }, at: now)
      #expect(exchange.leased.isEmpty)
      let connection = try ledger.connect()
      #expect(try connection.number("SELECT count(*) FROM download WHERE not_before IS NULL") == 0)
      for store in [exact, late] { try await store.close() }
    }

    @Test("A machine that changes a delayed download leaves its due time as it is")
    func changes() async throws {
      let ledger = try TestLedger()
      let (early, late) = (try await ledger.open(clock: Self.early), try await ledger.open(clock: Self.late))
      let ids: [DownloadID] = ["a", "b"]
      try await early.fill(ids, at: Self.early())
      try await early.delayAll(by: 600, at: Self.early())
      let connection = try ledger.connect()
      let text = "SELECT not_before::text FROM download ORDER BY id"
      let before = try connection.all(text)
      for store in [late, early, late] { #expect(try await store.increment(ids).count == 2) }
      #expect(try connection.all(text) == before)
      for store in [early, late] { try await store.close() }
    }

    @Test("Records that are put into the ledger keep the time until they are due")
    func restoring() async throws {
      let (source, target) = (try TestLedger(), try TestLedger())
      let (early, late) = (try await source.open(clock: Self.early), try await target.open(clock: Self.late))
      try await early.fill(["a"], at: Self.early())
      try await early.delayAll(by: 600, at: Self.early())
      var record = try #require(try await early.record("a"))
      // Copied by a program on the other machine.
      record.notBefore = record.notBefore.map { $0 + 7_200 }
      #expect(try await late.restore([record], at: Self.late()) == [true])
      #expect((500...610).contains(try target.connect().number(Self.wait)))
      for store in [early, late] { try await store.close() }
    }

    @Test("The date of a user is the same on all machines")
    func deadlines() async throws {
      let ledger = try TestLedger()
      let (early, late) = (try await ledger.open(clock: Self.early), try await ledger.open(clock: Self.late))
      var addition = try LedgerAddition("a", order: 1)
      let deadline = Date(timeIntervalSince1970: 1_900_000_000)
      addition.request.deadline = deadline
      _ = try await early.add([addition], at: Self.early())
      #expect(try await late.record("a")?.request.deadline == deadline)
      for store in [early, late] { try await store.close() }
    }

    @Test("A clock that jumps while the ledger is open makes nothing due, and delays nothing")
    func jumps() async throws {
      let jump = Mutex(0.0)
      let clock: @Sendable () -> Date = { Date() + jump.withLock { $0 } }
      let ledger = try TestLedger()
      let store = try await ledger.open(clock: clock)
      try await store.fill(["a"], at: clock())
      try await store.delayAll(by: 600, at: clock())
      for seconds in [3_600.0, -7_200] {
        jump.withLock { $0 = seconds }
        #expect(try await store.leaseAll(at: clock()).isEmpty)
        let due = try #require(try await store.record("a")?.notBefore)
        #expect((500...610).contains(due.timeIntervalSince(clock())))
      }
      #expect(try await store.leaseAll(at: clock() + 700).map(\.id) == ["a"])
      try await store.close()
    }
  }

  /// How a store finds the difference of the clocks.
  @Suite(.endsHangs)
  struct ClockDifferenceTests {
    private static let begin = ContinuousClock.now
    /// The server's time at the beginning.
    private static let time = 1_700_000_000.0

    private func instant(_ seconds: Double) -> ContinuousClock.Instant { Self.begin + .seconds(seconds) }

    /// Asks the server, whose answer says a time, which is by default the right one for the middle of its way.
    private func ask(
      _ difference: inout ClockDifference, at begin: Double, taking duration: Double = 0.01, _ time: Double? = nil
    ) {
      difference.note(
        time ?? Self.time + begin + duration / 2, asked: instant(begin), answered: instant(begin + duration))
    }

    @Test("Without an answer there is no difference")
    func unknown() {
      var difference = ClockDifference()
      #expect(difference.seconds(machine: 0, at: instant(0)) == 0)
    }

    @Test("A difference is found with the first answer", arguments: [3_600, -3_600.25, 1.7e9, 0.6])
    func first(seconds: Double) {
      var difference = ClockDifference()
      ask(&difference, at: 0)
      #expect(abs(difference.seconds(machine: Self.time + 5 - seconds, at: instant(5)) - seconds) < 0.001)
    }

    @Test("A small difference counts as none", arguments: [0, 0.4, -0.4])
    func small(seconds: Double) {
      var difference = ClockDifference()
      ask(&difference, at: 0)
      #expect(difference.seconds(machine: Self.time + 5 - seconds, at: instant(5)) == 0)
    }

    @Test("A difference stays the same while it is about right, and follows a jump of the machine's clock at once")
    func stays() {
      var difference = ClockDifference()
      ask(&difference, at: 0)
      let first = difference.seconds(machine: Self.time - 100, at: instant(0))
      for drift in [0.1, -0.3, 0.4] {
        #expect(difference.seconds(machine: Self.time + 60 - 100 + drift, at: instant(60)) == first)
      }
      #expect(abs(difference.seconds(machine: Self.time + 61 + 3_600, at: instant(61)) + 3_600) < 0.001)
      #expect(difference.seconds(machine: Self.time + 62 + 0.2, at: instant(62)) == 0)
    }

    @Test("A jump of the server's clock is found with the next answer")
    func serverJumps() {
      var difference = ClockDifference()
      ask(&difference, at: 0)
      ask(&difference, at: 10, Self.time + 10 + 500)
      #expect(abs(difference.seconds(machine: Self.time + 11, at: instant(11)) - 500) < 0.01)
    }

    @Test("An answer that took long replaces no better one, and makes no difference of its own")
    func slowAnswers() {
      var difference = ClockDifference()
      // It was sent at once, and arrived after 20 seconds.
      ask(&difference, at: 0, taking: 20, Self.time)
      #expect(difference.seconds(machine: Self.time + 20, at: instant(20)) == 0)
      ask(&difference, at: 30)
      #expect(difference.seconds(machine: Self.time + 31 - 5, at: instant(31)).rounded() == 5)
      ask(&difference, at: 40, taking: 20, Self.time + 41)
      #expect(difference.seconds(machine: Self.time + 61 - 20, at: instant(61)).rounded() == 20)
    }

    @Test("A date is the same after it was translated and back")
    func exactness() {
      var difference = ClockDifference()
      ask(&difference, at: 0)
      let seconds = difference.seconds(machine: Self.time - 3_599.987_654_321, at: instant(0))
      for fraction in stride(from: 0.0, to: 1, by: 0.012_345_678) {
        let time = Date(timeIntervalSinceReferenceDate: 721_692_800 + fraction)
        let stored = time.addingTimeInterval(seconds).timeIntervalSince1970
        let read = Date(timeIntervalSince1970: stored).addingTimeInterval(-seconds)
        #expect(read == Date(timeIntervalSince1970: time.timeIntervalSince1970))
      }
    }
  }
#endif
