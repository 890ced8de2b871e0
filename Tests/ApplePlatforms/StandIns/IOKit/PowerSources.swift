// The declarations of <IOKit/ps/IOPowerSources.h> and <IOKit/ps/IOPSKeys.h> that Downpipe uses, as Swift imports them:
// https://developer.apple.com/documentation/iokit/iopowersources_h. A test sets the power sources.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals

public import class Foundation.NSArray
public import class Foundation.NSDictionary
public import class Foundation.NSString

// IOKit exports CoreFoundation, whose strings, arrays and dictionaries are those of Foundation.
public typealias CFTypeRef = AnyObject
public typealias CFString = NSString
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary

public let kIOPSACPowerValue = "AC Power"
public let kIOPSBatteryPowerValue = "Battery Power"
public let kIOPSCurrentCapacityKey = "Current Capacity"
public let kIOPSMaxCapacityKey = "Max Capacity"
public let kIOPSIsPresentKey = "Is Present"

/// Not there: the power sources of the Mac of a test.
public struct PowerSources: Sendable {
  public var providing: String?
  public var list: [[String: any Sendable]]

  public init(providing: String?, _ list: [[String: any Sendable]]) {
    self.providing = providing
    self.list = list
  }

  /// The sources in a test's task; `nil` when the system does not say.
  @TaskLocal public static var current: PowerSources?
}

public func IOPSCopyPowerSourcesInfo() -> Unmanaged<CFTypeRef>! {
  PowerSources.current == nil ? nil : .passRetained(NSString(string: "info"))
}

public func IOPSGetProvidingPowerSourceType(_ snapshot: CFTypeRef!) -> Unmanaged<CFString>! {
  // Follows the “get” rule: the caller does not release it.
  PowerSources.current?.providing.map { .passRetained(NSString(string: $0)) }
}

public func IOPSCopyPowerSourcesList(_ blob: CFTypeRef!) -> Unmanaged<CFArray>! {
  let indices = (PowerSources.current?.list ?? []).indices.map { NSString(string: "\($0)") }
  return .passRetained(NSArray(array: indices))
}

public func IOPSGetPowerSourceDescription(_ blob: CFTypeRef!, _ ps: CFTypeRef!) -> Unmanaged<CFDictionary>! {
  guard let text = ps as? NSString, let index = Int("\(text)"), let list = PowerSources.current?.list else {
    return nil
  }
  return .passRetained(NSDictionary(dictionary: list[index]))
}
