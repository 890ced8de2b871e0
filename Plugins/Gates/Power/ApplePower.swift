#if os(macOS)
  import Foundation
  import IOKit.ps

  /// The power sources of IOKit. Tested on Linux with a stand-in for IOKit (`.ci/apple`).
  struct ApplePower: PowerSource {
    func read() async throws -> PowerState {
      guard let info = IOPSCopyPowerSourcesInfo()?.takeRetainedValue() else { return PowerState() }
      let type = IOPSGetProvidingPowerSourceType(info)?.takeUnretainedValue() as String?
      var state = PowerState(isOnMains: type.map { $0 == kIOPSACPowerValue })
      let sources = IOPSCopyPowerSourcesList(info)?.takeRetainedValue() as [CFTypeRef]? ?? []
      let charges = sources.compactMap { source in
        Self.charge(IOPSGetPowerSourceDescription(info, source)?.takeUnretainedValue() as? [String: Any] ?? [:])
      }
      if !charges.isEmpty { state.charge = charges.reduce(0, +) / charges.count }
      return state
    }

    /// The charge of a battery in percent; `nil` for a slot without one.
    private static func charge(_ source: [String: Any]) -> Int? {
      guard source[kIOPSIsPresentKey] as? Bool != false, let current = source[kIOPSCurrentCapacityKey] as? Int,
        let most = source[kIOPSMaxCapacityKey] as? Int, most > 0
      else { return nil }
      return min(max(current * 100 / most, 0), 100)
    }
  }
#elseif os(iOS)
  import UIKit

  /// The battery of `UIDevice`. Tested on Linux with a stand-in for UIKit (`.ci/apple`).
  struct ApplePower: PowerSource {
    @MainActor func read() async throws -> PowerState {
      let device = UIDevice.current
      device.isBatteryMonitoringEnabled = true
      // The level of 53 % times 100 is a little less than 53.
      var state = PowerState(
        charge: device.batteryLevel < 0 ? nil : Int((device.batteryLevel * 100).rounded()))
      switch device.batteryState {
      case .unplugged: state.isOnMains = false
      case .charging, .full: state.isOnMains = true
      case .unknown: break
      @unknown default: break
      }
      return state
    }
  }
#endif
