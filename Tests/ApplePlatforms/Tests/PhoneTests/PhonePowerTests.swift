import DownpipeCore
import Testing
import UIKit

@testable import DownpipeGatesOnPhone

@Suite(.serialized, .timeLimit(.minutes(5)))
struct PhonePowerTests {
  private static let table: [(Float, UIDevice.BatteryState, PowerState)] = [
    (-1, .unknown, PowerState()),
    (0.71, .unplugged, PowerState(isOnMains: false, charge: 71)),
    (0, .unplugged, PowerState(isOnMains: false, charge: 0)),
    (0.55, .charging, PowerState(isOnMains: true, charge: 55)),
    (1, .full, PowerState(isOnMains: true, charge: 100)),
  ]

  @Test(arguments: table)
  @MainActor func readsTheBattery(level: Float, battery: UIDevice.BatteryState, state: PowerState) async throws {
    UIDevice.current.battery = (level, battery)
    // The level is −1 until monitoring is switched on.
    UIDevice.current.isBatteryMonitoringEnabled = false
    #expect(try await ApplePower().read() == state)
  }

  @Test func everyPercentIsRead() async throws {
    for percent in 0...100 {
      await MainActor.run { UIDevice.current.battery = (Float(percent) / 100, .unplugged) }
      #expect(try await ApplePower().read().charge == percent)
    }
  }
}
