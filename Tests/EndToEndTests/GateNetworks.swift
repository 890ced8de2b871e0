#if os(Linux)
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Glibc
  import Synchronization

  /// A network namespace with two cables (veth) to this one: `eth0`, which is an Ethernet interface there, and `wlan0`,
  /// which is a Wi-Fi interface. The server has an address of neither network, so that the default route decides.
  ///
  /// The routes, links and addresses are those of the kernel. The kinds of the interfaces are those of a folder that is
  /// mounted over `/sys/class/net`.
  struct GateNetworks: Sendable {
    enum Network: Int, CaseIterable, Sendable {
      case eth0 = 0
      case wlan0 = 1
    }

    /// The address of the server at this end.
    let serverAddress: String
    private let addresses: [String]
    private let gateways: [String]
    private let namespace: String
    private let near: [String]
    private let sysfs: TemporaryFolder

    private static let count = Atomic(0)

    private init() throws {
      let number = Self.count.add(1, ordering: .relaxed).newValue
      // 198.19.0.0/16 is for tests of networks (RFC 2544); one of its 4096 networks of 16 addresses.
      let network = (Int(getpid()) &* 8 &+ number) % 4096 * 16
      func address(_ host: Int) -> String { "198.19.\(network >> 8).\((network & 255) + host)" }
      gateways = [address(1), address(5)]
      addresses = [address(2), address(6)]
      serverAddress = address(9)
      namespace = "downpipe-gate-\(getpid())-\(number)"
      near = Network.allCases.map { "dg\($0.rawValue)-\(getpid() % 100_000)-\(number)" }
      sysfs = try TemporaryFolder()
      for (name, type) in [("eth0", ""), ("wlan0", "DEVTYPE=wlan\n")] {
        try sysfs.write(Array("1\n".utf8), to: "\(name)/type")
        try sysfs.write(Array("\(type)INTERFACE=\(name)\n".utf8), to: "\(name)/uevent")
        try sysfs.write([], to: "\(name)/device/uevent")
      }
    }

    /// Creates the networks, and removes them when `body` has ended.
    /// - Throws: what `body` throws; `DownloadError` with `.permission` where it is not allowed.
    static func with(_ body: (GateNetworks) async throws -> Void) async throws {
      let networks = try GateNetworks()
      let result: Result<Void, any Error>
      do {
        try await networks.lay()
        result = .success(try await body(networks))
      } catch {
        result = .failure(error)
      }
      for name in networks.near { _ = try? await Command("ip", ["link", "del", name]).run() }
      _ = try? await Command("ip", ["netns", "del", networks.namespace]).run()
      try result.get()
    }

    private func lay() async throws {
      try await ip("netns add \(namespace)")
      for network in Network.allCases {
        let (near, gateway, far) = (near[network.rawValue], gateways[network.rawValue], addresses[network.rawValue])
        try await ip("link add \(near) type veth peer name \(network) netns \(namespace)")
        try await ip("addr add \(gateway)/30 dev \(near)")
        try await ip("link set \(near) up")
        try await inside("addr add \(far)/30 dev \(network)")
        try await inside("link set \(network) up")
      }
      try await ip("addr add \(serverAddress)/32 dev \(near[0])")
      try await inside("link set lo up")
    }

    private func ip(_ line: String) async throws {
      try await RootAccess.run("ip", line.split(separator: " ").map(String.init))
    }

    private func inside(_ line: String) async throws { try await ip("-n \(namespace) " + line) }

    /// Starts a program in the namespace, and ends it if it hangs.
    var launcher: [String] {
      [
        "ip", "netns", "exec", namespace, "sh", "-c", "mount --bind \"$0\" /sys/class/net && exec \"$@\"", sysfs.path,
        "timeout", "-k", "1", "\(Command.hangLimit)",
      ]
    }

    /// Moves the default route; `nil` removes it.
    func route(over network: Network?) async throws {
      guard let network else { return try await inside("route del default") }
      try await inside("route replace default via \(gateways[network.rawValue])")
    }
  }
#endif
