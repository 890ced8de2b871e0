import DownpipeTesting
import Foundation
import Testing

/// A folder with the layout of `/sys/class/net` or `/sys/class/power_supply`.
final class SysfsFolder: Sendable {
  /// The files of an interface.
  struct Interface: Sendable, Hashable, CustomTestStringConvertible {
    var type = 1
    var deviceType: String?
    /// Empty folders and files.
    var entries: Set<String> = []

    var testDescription: String { "\(type) \(deviceType ?? "") \(entries.sorted())" }

    static let ethernet = Interface(entries: ["device"])
    static let wifi = Interface(deviceType: "wlan", entries: ["device", "wireless", "phy80211"])
    static let cellular = Interface(deviceType: "wwan", entries: ["device"])
    static let tunnel = Interface(type: 65_534, entries: ["tun_flags"])
    static let virtual = Interface()
  }

  private let folder: TemporaryFolder
  var path: String { folder.path }

  init(_ interfaces: [String: Interface] = [:]) throws {
    folder = try TemporaryFolder()
    for (name, interface) in interfaces {
      try write("\(interface.type)", to: "\(name)/type")
      let type = interface.deviceType.map { "DEVTYPE=\($0)\n" } ?? ""
      try write("\(type)INTERFACE=\(name)\nIFINDEX=2", to: "\(name)/uevent")
      for entry in interface.entries { try write("", to: "\(name)/\(entry)") }
    }
  }

  /// Writes a file with a final line break, as the kernel does.
  func write(_ text: String, to name: String) throws { try folder.write(Array("\(text)\n".utf8), to: name) }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: folder.path(name)) }
}
