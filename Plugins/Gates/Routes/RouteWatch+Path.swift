#if canImport(Network)
  import DownpipeCore
  import Network

  extension RouteWatch {
    /// Publishes the rule for the default path of `NWPathMonitor`, as a table with a default route over the first
    /// interface of the path. Tested on Linux with a stand-in for Network (`.ci/apple`).
    static func runOnPaths(
      _ publish: @Sendable (GateRule) -> Void, rule: @Sendable (RouteTable, String) -> GateRule
    ) async throws {
      for await path in NWPathMonitor() { publish(rule(table(path), "")) }
      try Task.checkCancellation()
    }

    private static func table(_ path: NWPath) -> RouteTable {
      // With `requiresConnection`, a connection activates the path.
      guard path.status != .unsatisfied else { return RouteTable() }
      // Without an interface, nothing is known about the route.
      let interface = path.availableInterfaces.first
      let name = interface?.name ?? "an interface without a name"
      var table = RouteTable(
        [IPAddress.Family.v4, .v6].map { Route(IPAddress(family: $0, bits: 0), length: 0, interface: name) })
      table.kinds = [name: interface.map { kind($0.type) } ?? .unknown]
      if path.isExpensive {
        table.metered[name] = "which the system counts as expensive"
      } else if path.isConstrained {
        table.metered[name] = "which is in Low Data Mode"
      }
      return table
    }

    private static func kind(_ type: NWInterface.InterfaceType) -> InterfaceKind {
      switch type {
      case .wifi: .wifi
      case .wiredEthernet: .ethernet
      case .cellular: .cellular
      case .loopback: .loopback
      // VPNs have this type.
      case .other: .tunnel
      @unknown default: .unknown
      }
    }
  }
#endif
