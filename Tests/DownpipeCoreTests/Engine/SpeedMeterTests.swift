import Testing

@testable import DownpipeCore

@Suite("Speed meter")
struct SpeedMeterTests {
  @Test("A steady transfer has its speed, however often it is measured", arguments: [10, 100, 250, 500, 2000])
  func steady(interval: Int) throws {
    var meter = SpeedMeter()
    for step in 0...(20_000 / interval) {
      meter.record(Int64(step * interval * 3), at: .milliseconds(step * interval))
    }
    let speed = try #require(meter.bytesPerSecond)
    #expect(abs(speed - 3000) < 0.001)
    #expect(meter.latest == 60_000)
  }

  @Test("Bytes of the last five seconds count, and older ones do not")
  func window() throws {
    var meter = SpeedMeter()
    var bytes: Int64 = 0
    for step in 0...200 {
      meter.record(bytes, at: .milliseconds(step * 100))
      bytes += step < 100 ? 1_000_000 : 100
    }
    let speed = try #require(meter.bytesPerSecond)
    #expect(abs(speed - 1000) < 1)
  }

  @Test("A transfer that starts again is measured from there")
  func restart() {
    var meter = SpeedMeter()
    for step in 0...10 { meter.record(Int64(step) * 1000, at: .milliseconds(step * 100)) }
    meter.record(0, at: .milliseconds(1100))
    #expect(meter.bytesPerSecond == nil && meter.latest == 0)
    meter.record(500, at: .milliseconds(1600))
    #expect(meter.bytesPerSecond == 1000)
  }
}
