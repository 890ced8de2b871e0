// The declarations of Apple's UIKit that Downpipe uses: https://developer.apple.com/documentation/uikit/uidevice. A test
// sets the battery.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import class Foundation.NSObject

@MainActor open class UIDevice: NSObject {
  public enum BatteryState: Int, Sendable {
    case unknown = 0
    case unplugged = 1
    case charging = 2
    case full = 3
  }

  open class var current: UIDevice { device }
  private static let device = UIDevice()

  open var isBatteryMonitoringEnabled = false
  /// 0 to 1; −1 without monitoring and in the simulator.
  open var batteryLevel: Float { isBatteryMonitoringEnabled ? battery.level : -1 }
  open var batteryState: BatteryState { isBatteryMonitoringEnabled ? battery.state : .unknown }

  /// Not there: the battery.
  public var battery: (level: Float, state: BatteryState) = (-1, .unknown)
}
