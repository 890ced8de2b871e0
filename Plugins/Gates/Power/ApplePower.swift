#if os(macOS)
  import IOKit.ps

  /// The power sources of IOKit. It has no test, since the tests run on Linux.
  struct ApplePower: PowerSource {
    func read() async throws -> PowerState {
      guard let info = IOPSCopyPowerSourcesInfo()?.takeRetainedValue() else { return PowerState() }
      let type = IOPSGetProvidingPowerSourceType(info)?.takeUnretainedValue() as String?
      var state = PowerState(isOnMains: type.map { $0 == kIOPMACPowerKey })
      let sources = IOPSCopyPowerSourcesList(info)?.takeRetainedValue() as [CFTypeRef]? ?? []
      for source in sources {
        let values = IOPSGetPowerSourceDescription(info, source)?.takeUnretainedValue() as? [String: Any]
        guard let current = values?[kIOPSCurrentCapacityKey] as? Int,
          let most = values?[kIOPSMaxCapacityKey] as? Int, most > 0
        else { continue }
        state.charge = current * 100 / most
      }
      return state
    }
  }
#elseif os(iOS)
  import UIKit

  /// The battery of `UIDevice`. It has no test, since the tests run on Linux.
  struct ApplePower: PowerSource {
    @MainActor func read() async throws -> PowerState {
      let device = UIDevice.current
      device.isBatteryMonitoringEnabled = true
      var state = PowerState(charge: device.batteryLevel < 0 ? nil : Int(device.batteryLevel * 100))
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
