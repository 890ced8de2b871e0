import DownpipeCore
import IOKit
import Testing

@testable import DownpipeGates

@Suite(.timeLimit(.minutes(5)))
struct MacPowerTests {
  private static func battery(_ current: Int, of most: Int = 100, isPresent: Bool = true) -> [String: any Sendable] {
    [kIOPSCurrentCapacityKey: current, kIOPSMaxCapacityKey: most, kIOPSIsPresentKey: isPresent]
  }

  private static let table: [(PowerSources?, PowerState)] = [
    (nil, PowerState()),
    // A desktop.
    (PowerSources(providing: kIOPSACPowerValue, []), PowerState(isOnMains: true)),
    (
      PowerSources(providing: kIOPSBatteryPowerValue, [battery(71)]), PowerState(isOnMains: false, charge: 71)
    ),
    // In mAh, as on older Macs.
    (
      PowerSources(providing: kIOPSACPowerValue, [battery(1500, of: 6000)]), PowerState(isOnMains: true, charge: 25)
    ),
    // A desktop behind an uninterruptible power supply.
    (PowerSources(providing: "UPS Power", [battery(80)]), PowerState(isOnMains: false, charge: 80)),
    // The average of the batteries; an empty slot does not count.
    (
      PowerSources(providing: kIOPSBatteryPowerValue, [battery(80), battery(20), battery(0, isPresent: false)]),
      PowerState(isOnMains: false, charge: 50)
    ),
    (
      PowerSources(providing: nil, [[kIOPSMaxCapacityKey: 0, kIOPSCurrentCapacityKey: 0], ["Name": "x"]]), PowerState()
    ),
  ]

  @Test(arguments: table)
  func readsThePowerSources(sources: PowerSources?, state: PowerState) async throws {
    let read = try await PowerSources.$current.withValue(sources) { try await ApplePower().read() }
    #expect(read == state)
  }

  @Test func theGateOfThisSystemReadsThem() async {
    let (rules, publish) = AsyncStream.makeStream(of: GateRule.self)
    let sources = PowerSources(providing: kIOPSBatteryPowerValue, [Self.battery(71)])
    let task = PowerSources.$current.withValue(sources) {
      Task { try await PowerGate().watch { publish.yield($0) } }
    }
    var iterator = rules.makeAsyncIterator()
    let verdict = await iterator.next()?.verdict(for: Candidate())
    #expect(verdict == .closed("PowerGate: the machine runs on its battery, at 71 %"))
    task.cancel()
    _ = await task.result
  }
}
