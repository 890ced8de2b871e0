#if canImport(Network)
  import DownpipeCore
  import Network

  extension Online {
    /// Publishes the rule for the default path of `NWPathMonitor`. Tested on Linux with a stand-in for Network
    /// (`.ci/apple`).
    func watchSystem(_ publish: @Sendable (GateRule) -> Void) async throws {
      for await path in NWPathMonitor() {
        publish(Self.rule(name: name, path: path))
      }
      try Task.checkCancellation()
    }

    private static func rule(name: String, path: NWPath) -> GateRule {
      let obstacle: String
      switch path.status {
      // A connection activates the path, such as a VPN on demand.
      case .satisfied, .requiresConnection: return .open
      case .unsatisfied: obstacle = reason(path.unsatisfiedReason)
      @unknown default: return .open
      }
      return .each { candidate in
        RoutedHost(candidate.host) == .local ? .open : .closed("\(name): \(obstacle)")
      }
    }

    private static func reason(_ reason: NWPath.UnsatisfiedReason) -> String {
      switch reason {
      case .cellularDenied: "cellular data is switched off for this app"
      case .wifiDenied: "Wi-Fi is switched off for this app"
      case .localNetworkDenied: "the local network is switched off for this app"
      case .vpnInactive: "the VPN that is required is not active"
      default: "there is no network"
      }
    }
  }
#endif
