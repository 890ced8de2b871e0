@testable import DownpipeCore
import Testing

struct MachineHealthTests {
  private let fault = DownloadError(.permission, "the folder cannot be written", scope: .machine)

  @Test("after a fault nothing starts, then one, and the pauses grow to five minutes")
  func pausesGrow() {
    var health = MachineHealth()
    #expect(health.verdict(at: .zero) == .all)
    #expect(health.fault == nil)
    var now = Duration.zero
    for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
      let end = health.failed("trial", fault, at: now)
      #expect(end == now + .seconds(seconds))
      #expect(health.verdict(at: end - .milliseconds(1)) == .none)
      #expect(health.verdict(at: end) == .one)
      health.started("trial")
      #expect(health.verdict(at: end) == .none)
      now = end
    }
    #expect(health.fault == fault)
    health.ended("trial", isFinished: true)
    #expect(health.verdict(at: now) == .all)
    #expect(health.failed("trial", fault, at: now) == now + .seconds(5))
  }

  @Test("those that ran beside the first say the same, and do not lengthen the pause")
  func oneFaultIsOne() {
    var health = MachineHealth()
    let end = health.failed("a", fault, at: .zero)
    #expect(health.failed("b", fault, at: .seconds(1)) == end)
    #expect(health.verdict(at: end) == .one)
  }

  @Test("a trial that ends for another reason is followed by the next one")
  func otherEnds() {
    var health = MachineHealth()
    let end = health.failed("a", fault, at: .zero)
    health.started("a")
    health.ended("b", isFinished: false)
    #expect(health.verdict(at: end) == .none)
    health.ended("a", isFinished: false)
    #expect(health.verdict(at: end) == .one)
  }

  @Test("a trial that receives bytes lets the others go on; the next fault still pauses longer")
  func bytesEndAPause() {
    var health = MachineHealth()
    let end = health.failed("a", fault, at: .zero)
    health.started("a")
    health.receives()
    #expect(health.verdict(at: end) == .all)
    #expect(health.failed("a", fault, at: end) == end + .seconds(10))
  }
}
