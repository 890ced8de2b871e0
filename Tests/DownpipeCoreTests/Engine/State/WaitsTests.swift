import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Downloads that may run before their due times, and the timers.
@Suite(.endsHangs)
struct WaitsTests {
  private let now = Date(timeIntervalSince1970: 1_000_000)

  private func record(
    _ id: DownloadID, _ what: Awaited?, total: ByteCount = .unknown, have: Int64 = 0, in seconds: TimeInterval = 30
  ) throws -> DownloadRecord {
    var record = DownloadRecord(
      request: try DownloadRequest("https://example.org/a", id: id), generation: 1, arrival: 1, rank: Rank(),
      createdAt: now)
    record.awaited = what
    record.notBefore = now.addingTimeInterval(seconds)
    record.checkpoint.total = total
    if have > 0 { record.checkpoint.ranges = ByteRangeSet(0..<have) }
    return record
  }

  @Test func whatIsMissingIsTakenOutOnceWhenItIsThere() throws {
    var waits = Waits()
    func take(_ what: Awaited) -> Set<DownloadID> { Set(waits.due(what)) }
    waits.note(try record("n1", .network), available: nil)
    waits.note(try record("n2", .network), available: nil)
    waits.note(try record("d", .descriptors), available: nil)
    #expect(waits.isAnythingMissing && !waits.isRoomMissing)
    #expect(take(.network) == ["n1", "n2"])
    #expect(take(.network).isEmpty)
    #expect(take(.descriptors) == ["d"])
    #expect(!waits.isAnythingMissing)
  }

  @Test func whatTimeAloneBringsIsNotKept() throws {
    var waits = Waits()
    waits.note(try record("a", nil), available: nil)
    waits.note(try record("b", .owner), available: nil)
    waits.note(try record("c", .link), available: nil)
    waits.note(try record("d", .disk), available: nil)
    var timeless = try record("e", .network)
    timeless.notBefore = nil
    waits.note(timeless, available: nil)
    var paused = try record("f", .network)
    paused.phase = .paused
    waits.note(paused, available: nil)
    #expect(!waits.isAnythingMissing)
  }

  @Test func aDownloadThatHasEndedItsNextRunIsForgotten() throws {
    var waits = Waits()
    waits.note(try record("a", .network), available: nil)
    waits.note(try record("a", nil), available: nil)
    #expect(!waits.isAnythingMissing)
    waits.note(try record("a", .network), available: nil)
    waits.note(try record("a", .disk), available: 5)
    #expect(waits.isRoomMissing)
    let ready = waits.due(.network)
    #expect(ready.isEmpty)
  }

  // MARK: Room

  @Test func roomHasToHaveGrownAndToSuffice() throws {
    var waits = Waits()
    func take(_ room: Int64?) -> [DownloadID] { waits.due(withRoom: room, at: now) }
    waits.note(try record("a", .disk, total: .known(10 << 20), have: 4 << 20), available: 1 << 20)
    #expect(take(nil).isEmpty)
    #expect(take(1 << 20).isEmpty)
    #expect(take((6 << 20) - 1).isEmpty, "the remaining bytes need more space")
    #expect(take(6 << 20) == ["a"])
    #expect(take(6 << 20).isEmpty)
    // A download that is nearly complete, or of unknown length, needs a mebibyte.
    waits.note(try record("b", .disk, total: .known(100), have: 99), available: 0)
    waits.note(try record("c", .disk), available: 0)
    #expect(take((1 << 20) - 1).isEmpty)
    #expect(take(1 << 20).count == 1)
    #expect(take(1 << 20).count == 1)
    // The space at the time of the failure was not enough.
    waits.note(try record("d", .disk, total: .known(100)), available: 8 << 20)
    #expect(take(8 << 20).isEmpty)
    #expect(take((8 << 20) + 1) == ["d"])
  }

  @Test func roomIsGivenAwayOnce() throws {
    var waits = Waits()
    for index in 0..<10 {
      waits.note(try record(DownloadID("d\(index)"), .disk, total: .known(2 << 20)), available: 0)
    }
    let ready = waits.due(withRoom: 7 << 20, at: now)
    #expect(ready.count == 3)
    let rest = waits.due(withRoom: 100 << 20, at: now)
    #expect(Set(ready + rest).count == 10)
  }

  @Test func afterItsTimeItIsTriedByTheLedgerAlone() throws {
    var waits = Waits()
    waits.note(try record("a", .disk, in: 5), available: 0)
    let ready = waits.due(withRoom: 100 << 20, at: now.addingTimeInterval(5))
    #expect(ready.isEmpty)
    #expect(!waits.isAnythingMissing)
  }

  // MARK: Timers

  @Test func oneTimerForEachDueTime() {
    var waits = Waits()
    func arm(_ seconds: TimeInterval) -> Duration? { waits.arm(now.addingTimeInterval(seconds), at: now, now: .zero) }
    #expect(arm(3) == .seconds(3))
    #expect(arm(3) == nil)
    #expect(arm(4) == nil, "after the earlier timer the ledger is asked for the next due time")
    #expect(arm(2) == .seconds(2))
    #expect(arm(-5) == .zero, "a past time is due at once")
    for due in [Duration.seconds(3), .seconds(2), .zero] { waits.disarm(due) }
    #expect(arm(1e12) == .seconds(400 * 86_400), "a clock that jumped does not set an endless timer")
    #expect(arm(3) == .seconds(3))
  }
}

extension Waits {
  /// The downloads that try again because a resource is available.
  fileprivate mutating func due(_ what: Awaited) -> [DownloadID] {
    end(what)
    return takeDue()
  }

  fileprivate mutating func due(withRoom room: Int64?, at now: Date) -> [DownloadID] {
    end(withRoom: room, at: now)
    return takeDue()
  }
}
