#if os(Linux)
  import DownpipePOSIX
  import Foundation
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// A folder with the layout of `/sys/class/power_supply`
  /// (https://docs.kernel.org/power/power_supply_class.html).
  package struct LinuxPower: PowerSource {
    private let root: String

    package init(_ root: String = "/sys/class/power_supply") { self.root = root }

    /// A machine without the folder, or without supplies, has mains power.
    package func read() async throws -> PowerState {
      // Drivers of batteries ask the hardware, which takes some milliseconds.
      try await BlockingThreads.run { [self] _ in state() }
    }

    /// One folder of the class.
    private struct Supply {
      var isBattery: Bool
      /// Whether it supplies power.
      var isOnline: Bool?
      var isDischarging: Bool?
      var charge: Int?
    }

    private func state() -> PowerState {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
      let supplies = names.sorted().compactMap(supply)
      let batteries = supplies.filter(\.isBattery)
      if batteries.isEmpty { return PowerState(isOnMains: true) }
      let charges = batteries.compactMap(\.charge)
      var state = PowerState(charge: charges.isEmpty ? nil : charges.reduce(0, +) / charges.count)
      let mains = supplies.filter { !$0.isBattery }.compactMap(\.isOnline)
      if mains.contains(true) {
        state.isOnMains = true
      } else if batteries.contains(where: { $0.isDischarging == true }) || !mains.isEmpty {
        state.isOnMains = false
      } else if batteries.contains(where: { $0.isDischarging == false }) {
        state.isOnMains = true
      }
      return state
    }

    private func supply(_ name: String) -> Supply? {
      // The batteries of mice and keyboards have the scope `Device`.
      guard text(name, "scope") != "Device", let type = text(name, "type") else { return nil }
      switch type {
      case "Battery", "UPS":
        guard text(name, "present") != "0" else { return nil }
        let isDischarging: Bool? =
          switch text(name, "status") {
          case "Discharging": true
          case "Charging", "Full", "Not charging": false
          default: nil
          }
        let charge = text(name, "capacity").flatMap { Int($0) }.map { min(max($0, 0), 100) }
        return Supply(isBattery: true, isDischarging: isDischarging, charge: charge)
      default:
        // `Mains`, `USB`, `Wireless` and others: 0 for none, 1 for fixed and 2 for programmable.
        return Supply(isBattery: false, isOnline: text(name, "online").flatMap { Int($0) }.map { $0 > 0 })
      }
    }

    /// The first line of a file.
    private func text(_ name: String, _ file: String) -> String? {
      guard let file = try? OpenFile.ifPresent(Entry("\(root)/\(name)/\(file)"), O_RDONLY),
        let bytes = try? file.read(256, at: 0)
      else { return nil }
      return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
    }
  }
#endif
