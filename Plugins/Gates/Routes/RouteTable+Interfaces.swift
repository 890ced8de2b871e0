package import DownpipeCore

/// A network interface as gates see it.
package struct NetworkInterface: Sendable, Hashable {
  /// The name, such as `eth0`.
  package var name: String
  package var kind: InterfaceKind
  /// Why its use costs money, if the system says so: `which the system counts as expensive`.
  package var metered: String?

  package init(_ name: String, _ kind: InterfaceKind, metered: String? = nil) {
    self.name = name
    self.kind = kind
    self.metered = metered
  }
}

/// What a gate says about an interface.
package enum InterfaceVerdict: Sendable, Hashable {
  case allowed
  /// The text follows the name of the interface; it may be empty: `, which is denied`.
  case refused(String)
}

extension RouteTable {
  /// Returns the rule of a gate that permits some interfaces, all by default.
  ///
  /// A host name is reached over the default routes: if there is one for IPv4 and one for IPv6, both interfaces must be
  /// allowed, since either may be used. An address is reached over its own route. For names on the local link, and for
  /// all names where they need no default route, one allowed interface is enough.
  /// - Parameters:
  ///   - name: the name of the gate, for its reasons.
  ///   - namesNeedDefaultRoute: whether a host name needs a default route.
  ///   - remark: text to add to each reason.
  ///   - verdict: decides for an interface; pure and cheap.
  package func rule(
    name: String, namesNeedDefaultRoute: Bool = true, remark: String = "",
    interfaces verdict: @escaping @Sendable (NetworkInterface) -> InterfaceVerdict = { _ in .allowed }
  ) -> GateRule {
    let neighbours = obstacleToNeighbours ?? refusalOfNeighbours(verdict)
    let strangers =
      namesNeedDefaultRoute ? obstacleToNames ?? refusalOfNames(verdict) : refusalOfNames(verdict) ?? neighbours
    return .each { candidate in
      let obstacle: String? =
        switch RoutedHost(candidate.host) {
        case .local: nil
        case .address(let address, let zone): self.obstacle(to: address, zone: zone, verdict)
        // RFC 6762 §3: names that end in .local are on the same link.
        case .name(let host): host.lowercased().hasSuffix(".local") ? neighbours : strangers
        }
      return obstacle.map { .closed("\(name): \($0)\(remark)") } ?? .open
    }
  }

  /// Why an address cannot be reached over a permitted interface; `nil` when there is a route, or may be one.
  package func obstacle(
    to address: IPAddress, zone: String? = nil, _ verdict: (NetworkInterface) -> InterfaceVerdict = { _ in .allowed }
  ) -> String? {
    switch choice(to: address, zone: zone) {
    case .local, .unknown: return nil
    case .obstacle(let reason): return reason
    case .route(let route):
      let title = route.prefixLength == 0 ? "the default route" : "the route to the address"
      return route.interface.flatMap { refusal(title, $0, verdict) }
    }
  }

  private func refusalOfNames(_ verdict: (NetworkInterface) -> InterfaceVerdict) -> String? {
    // Routes that were not read could have precedence.
    if isTruncated { return nil }
    for interface in defaultInterfaces {
      if let refusal = refusal("the default route", interface, verdict) { return refusal }
    }
    return nil
  }

  private func refusalOfNeighbours(_ verdict: (NetworkInterface) -> InterfaceVerdict) -> String? {
    if isTruncated { return nil }
    var first: String?
    for interface in Set(routes.filter(leadsOut).compactMap(\.interface)).sorted() {
      guard let refusal = refusal("the route to the local network", interface, verdict) else { return nil }
      first = first ?? refusal
    }
    return first
  }

  private func refusal(
    _ title: String, _ interface: String, _ verdict: (NetworkInterface) -> InterfaceVerdict
  ) -> String? {
    switch verdict(NetworkInterface(interface, kinds[interface] ?? .unknown, metered: metered[interface])) {
    case .allowed: nil
    case .refused(let why): "\(title) is over \(interface)\(why)"
    }
  }

  /// The interfaces of the default routes for IPv4 and IPv6; none when there is no default route.
  private var defaultInterfaces: [String] {
    var interfaces: [String] = []
    for family in [IPAddress.Family.v4, .v6] {
      // Longer prefixes have precedence.
      for cover in Self.defaultCovers(family).reversed() {
        let best = cover.map { prefix, length in
          routes.filter { $0.prefix == prefix && $0.prefixLength == length && leadsOut($0) }.min(by: Self.isBetter)
        }
        guard best.allSatisfy({ $0 != nil }) else { continue }
        interfaces += best.compactMap { $0?.interface }
        break
      }
    }
    return interfaces
  }
}
