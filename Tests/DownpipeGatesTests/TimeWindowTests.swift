import DownpipeCore
import DownpipeGates
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct TimeWindowTests {
  private func time(_ text: String) throws -> VirtualTime { VirtualTime(date: try Date(text, strategy: .iso8601)) }

  private func night(_ time: VirtualTime) -> TimeWindow {
    TimeWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6), in: .gmt, time: time)
  }

  @Test func sleepsUntilTheNextChange() async throws {
    let time = try time("2026-06-01T21:30:00Z")
    let watch = GateWatch(night(time))
    #expect(await watch.verdict() == .closed("TimeWindow: opens at 22:00 (GMT)"))
    await time.sleepers(atLeast: 1)
    #expect(time.pendingSleeps == [.seconds(1800)])
    time.advance(by: .seconds(1800))
    #expect(await watch.verdict() == .open)
    for _ in 0..<8 {
      await time.sleepers(atLeast: 1)
      #expect(time.pendingSleeps == [TimeWindow.longestSleep])
      time.advance(by: TimeWindow.longestSleep)
    }
    #expect(await watch.verdict() == .closed("TimeWindow: opens at 22:00 (GMT)"))
  }

  @Test func aClockThatIsSetIsSeen() async throws {
    let time = try time("2026-06-01T12:00:00Z")
    let watch = GateWatch(night(time))
    #expect(await watch.verdict() == .closed("TimeWindow: opens at 22:00 (GMT)"))
    await time.sleepers(atLeast: 1)
    time.jumpDate(by: .seconds(11 * 3600))
    time.advance(by: TimeWindow.longestSleep)
    #expect(await watch.verdict() == .open)
    // And back: the gate closes although the window had been opened.
    await time.sleepers(atLeast: 1)
    time.jumpDate(by: .seconds(-6 * 3600))
    time.advance(by: TimeWindow.longestSleep)
    #expect(await watch.verdict() == .closed("TimeWindow: opens at 22:00 (GMT)"))
  }

  @Test func fractionsOfASecondDoNotWakeItTooEarly() async throws {
    let time = VirtualTime(date: try Date("2026-06-01T21:59:58Z", strategy: .iso8601).addingTimeInterval(0.123_456_7))
    let watch = GateWatch(night(time))
    #expect(await watch.verdict() == .closed("TimeWindow: opens at 22:00 (GMT)"))
    await time.advanceToNextSleeper()
    #expect(await watch.verdict() == .open)
  }

  @Test func theReasonHasTheLocalTimeAfterAGap() async throws {
    let time = try time("2026-03-29T00:30:00Z")
    let zone = try #require(TimeZone(identifier: "Europe/Berlin"))
    let gate = TimeWindow(from: TimeOfDay(hour: 2, minute: 30), to: TimeOfDay(hour: 5), in: zone, time: time)
    #expect(await GateWatch(gate).verdict() == .closed("TimeWindow: opens at 03:00 (Europe/Berlin)"))
  }

  @Test func theWholeDayIsAlwaysOpen() async throws {
    let gate = TimeWindow(from: TimeOfDay(hour: 5), to: TimeOfDay(hour: 5))
    let watch = GateWatch(gate)
    #expect(await watch.verdict() == .open)
    #expect(await watch.next() == nil)
    #expect(gate.summary == "05:00–05:00")
  }

  @Test func conforms() async throws {
    for hour in [1, 23] {
      let time = try time("2026-06-01T\(hour < 10 ? "0" : "")\(hour):30:00Z")
      try await GateConformance(night(time)).run()
      let day = TimeWindow(from: TimeOfDay(hour: 6), to: TimeOfDay(hour: 22), time: time)
      try await GateConformance(day.unless(.userInitiated)).run()
    }
    let moving = try time("2026-06-01T21:30:00Z")
    try await GateConformance(night(moving)) {
      await moving.sleepers(atLeast: 1)
      moving.advance(by: .seconds(3600))
    }.run()
  }
}
