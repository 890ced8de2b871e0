#if os(Linux)
  import DownpipePOSIX
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// A folder with the layout of `/sys/class/net`, which has the kinds of the interfaces.
  package struct InterfaceFolder: Sendable {
    /// The folder of the kernel, for the network namespace in which it was mounted.
    package static let system = "/sys/class/net"

    private let root: String

    package init(_ root: String) { self.root = root }

    /// Returns the kind of an interface; `unknown` when it does not exist, or its files cannot be read.
    ///
    /// - `phy80211` and `wireless` exist for Wi-Fi, and `uevent` has `DEVTYPE=wlan` or `DEVTYPE=wwan`.
    /// - `type` is a number of `<linux/if_arp.h>`.
    /// - `device` exists for hardware only.
    package func kind(of name: String) -> InterfaceKind {
      guard let type = text(name, "type").flatMap({ Int($0.trimming) }) else { return .unknown }
      let deviceType = self.deviceType(of: name)
      if deviceType == "wlan" || exists(name, "phy80211") || exists(name, "wireless") { return .wifi }
      if deviceType == "wwan" { return .cellular }
      switch type {
      case Self.loopback: return .loopback
      case Self.rawIP: return exists(name, "device") ? .cellular : .virtual
      case _ where Self.wifi.contains(type): return .wifi
      case _ where Self.tunnels.contains(type): return .tunnel
      default: break
      }
      if exists(name, "tun_flags") { return .tunnel }
      guard exists(name, "device") else { return .virtual }
      return type == Self.ethernet && deviceType != "bluetooth" ? .ethernet : .other
    }

    private static let ethernet = 1
    private static let loopback = 772
    /// `ARPHRD_RAWIP`: modems without an Ethernet header.
    private static let rawIP = 519
    /// `ARPHRD_IEEE80211` and its monitor modes.
    private static let wifi: Set<Int> = [801, 802, 803]
    /// PPP (PPPoE, modems), IPv4 and IPv6 tunnels, SIT, GRE over IPv4 and IPv6, none (TUN, WireGuard).
    private static let tunnels: Set<Int> = [512, 768, 769, 776, 778, 823, 65_534]

    private func deviceType(of name: String) -> String? {
      let line = text(name, "uevent")?.split(separator: "\n").first { $0.hasPrefix("DEVTYPE=") }
      return line.map { String($0.dropFirst("DEVTYPE=".count)) }
    }

    private func exists(_ name: String, _ file: String) -> Bool { access("\(root)/\(name)/\(file)", F_OK) == 0 }

    private func text(_ name: String, _ file: String) -> String? {
      // The kernel has no such names, but another source of routes could.
      guard !name.contains("/"), name != ".", name != ".." else { return nil }
      guard let file = try? OpenFile.ifPresent(Entry("\(root)/\(name)/\(file)"), O_RDONLY) else { return nil }
      return (try? file.read(4096, at: 0)).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  extension String {
    fileprivate var trimming: Substring {
      drop(while: \.isWhitespace).prefix { !$0.isWhitespace }
    }
  }
#endif
