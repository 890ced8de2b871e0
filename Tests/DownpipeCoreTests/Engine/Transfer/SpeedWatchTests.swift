import HangLimit
import Testing

@testable import DownpipeCore

/// The minimum speed of a transfer.
@Suite(.endsHangs)
struct SpeedWatchTests {
  private let minimum = MinimumSpeed(bytesPerSecond: 10, over: .seconds(5))

  @Test func theMinimumCountsWholeWindows() {
    var watch = SpeedWatch(minimum, at: .seconds(100), bytes: 1000)
    func check(_ bytes: Int64, at seconds: Int) -> DownloadError.Code? {
      watch.check(bytes, at: .seconds(seconds))?.code
    }
    #expect(check(1000, at: 104) == nil, "the window has not ended")
    #expect(check(1050, at: 105) == nil, "exactly the minimum is enough")
    #expect(check(1050, at: 109) == nil, "the next window has begun")
    #expect(check(1099, at: 110) == .timedOut)
  }

  @Test func aLookThatComesLateJudgesTheWholeSpan() {
    var watch = SpeedWatch(minimum, at: .zero, bytes: 0)
    let error = watch.check(49, at: .seconds(60))
    #expect(error?.code == .timedOut)
    #expect(error?.message.contains("49 bytes") == true && error?.message.contains("60 seconds") == true)
  }

  @Test func bytesOfOtherWindowsDoNotCount() {
    var watch = SpeedWatch(minimum, at: .zero, bytes: 0)
    let first = watch.check(1_000_000, at: .seconds(5))
    #expect(first == nil)
    let second = watch.check(1_000_000, at: .seconds(10))
    #expect(second != nil, "a stall is detected after any speed")
  }

  @Test(arguments: [
    (1.0, 60, Int64(60)), (0.001, 60, 1), (0, 60, 0), (-5, 60, 0), (.infinity, 60, Int64(1e15)), (1.5, 1, 2),
  ])
  func minimumsAreWholeBytesOfAWindow(speed: Double, seconds: Int, bytes: Int64) {
    #expect(MinimumSpeed(bytesPerSecond: speed, over: .seconds(seconds)).bytesPerWindow == bytes)
  }

  @Test func aMinimumOfNothingNeverFails() {
    var watch = SpeedWatch(MinimumSpeed(bytesPerSecond: 0, over: .seconds(1)), at: .zero, bytes: 0)
    let error = watch.check(0, at: .seconds(1000))
    #expect(error == nil)
  }
}
