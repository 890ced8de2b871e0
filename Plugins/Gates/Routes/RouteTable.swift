import DownpipeCore

/// A route to other machines, or a route that rejects packets.
package struct Route: Sendable, Hashable {
  /// The destination addresses.
  package var prefix: IPAddress
  /// The number of leading bits of the prefix that must match.
  package var prefixLength: Int
  /// The outgoing interface; `nil` for a route without one.
  package var interface: String?
  /// Of routes with the same prefix, the one with the smallest metric is used.
  package var metric: UInt32
  /// Whether the route rejects packets.
  package var isReject: Bool

  package init(
    _ prefix: IPAddress, length: Int, interface: String?, metric: UInt32 = 0, isReject: Bool = false
  ) {
    self.prefix = prefix
    self.prefixLength = length
    self.interface = interface
    self.metric = metric
    self.isReject = isReject
  }

  fileprivate var isLoopback: Bool { interface == "lo" }
}

/// The routes, links and addresses of the machine at one moment.
package struct RouteTable: Sendable, Hashable {
  /// The routes that are up, in the order of the system.
  package var routes: [Route]
  /// Interfaces without a link, such as an unplugged cable. Their routes are ignored.
  package var downInterfaces: Set<String>
  /// The addresses of the machine.
  package var ownAddresses: Set<IPAddress>
  /// Whether some routes were not read.
  package var isTruncated: Bool
  /// The kinds of the interfaces that have routes.
  package var kinds: [String: InterfaceKind]
  /// Interfaces that the system reports as metered, with what it says: `which the system counts as expensive`.
  package var metered: [String: String]

  package init(
    _ routes: [Route] = [], downInterfaces: Set<String> = [], ownAddresses: Set<IPAddress> = [],
    isTruncated: Bool = false, kinds: [String: InterfaceKind] = [:], metered: [String: String] = [:]
  ) {
    self.routes = routes
    self.downInterfaces = downInterfaces
    self.ownAddresses = ownAddresses
    self.isTruncated = isTruncated
    self.kinds = kinds
    self.metered = metered
  }

  /// How an address is reached.
  package enum Choice: Sendable, Hashable {
    /// It is an address of the machine.
    case local
    /// Over this route, which has an interface.
    case route(Route)
    /// It is not reached, for the given reason.
    case obstacle(String)
    /// Some routes were not read, and none of the others leads to it.
    case unknown
  }

  /// Returns how an address is reached. Of the routes with a link, the one with the longest prefix decides.
  package func choice(to address: IPAddress, zone: String? = nil) -> Choice {
    if address.isLoopback || ownAddresses.contains(address) { return .local }
    let matching = routes.filter {
      address.begins(with: $0.prefix, length: $0.prefixLength) && (zone == nil || $0.interface == zone)
    }
    let linked = matching.filter { route in route.interface.map { !downInterfaces.contains($0) } ?? true }
    guard let best = linked.min(by: Self.isBetter) else {
      if isTruncated { return .unknown }
      if let down = matching.min(by: Self.isBetter)?.interface { return .obstacle("\(down) has no link") }
      return .obstacle("there is no route to the address")
    }
    guard best.isReject || best.interface == nil else { return .route(best) }
    // Linux ends its IPv6 table with a default route that rejects all packets.
    return .obstacle(
      best.prefixLength == 0 ? "there is no route to the address" : "the route to the address rejects packets")
  }

  /// Why host names cannot be reached; `nil` when there is a default route for IPv4 or IPv6. The address of a name is
  /// unknown before it is resolved, which needs the network.
  package var obstacleToNames: String? {
    if isTruncated { return nil }
    var down: String?
    for family in [IPAddress.Family.v4, .v6] {
      for cover in Self.defaultCovers(family) {
        let routes = cover.map { prefix, length in
          self.routes.filter { $0.prefix == prefix && $0.prefixLength == length }.sorted(by: Self.isBetter)
        }
        if routes.allSatisfy({ $0.first(where: leadsOut) != nil }) { return nil }
        down = down ?? routes.joined().first { isUsable($0) && !leadsOut($0) }?.interface
      }
    }
    return down.map { "the default route is over \($0), which has no link" } ?? "there is no default route"
  }

  /// Why no other machine can be reached; `nil` when there is any route to one.
  package var obstacleToNeighbours: String? {
    isTruncated || routes.contains(where: leadsOut) ? nil : "there is no route to any other machine"
  }

  private func isUsable(_ route: Route) -> Bool { !route.isReject && route.interface != nil && !route.isLoopback }

  func leadsOut(_ route: Route) -> Bool {
    isUsable(route) && route.interface.map { !downInterfaces.contains($0) } ?? false
      && !(route.prefix.family == .v6 && route.prefix.bits >> 120 == 0xFF)
  }

  static func isBetter(_ left: Route, _ right: Route) -> Bool {
    left.prefixLength != right.prefixLength
      ? left.prefixLength > right.prefixLength
      : left.metric < right.metric
  }

  /// Prefixes that together have the effect of a default route. VPNs add two halves in order not to replace the default
  /// route, and all public IPv6 addresses start with the bits 001.
  static func defaultCovers(_ family: IPAddress.Family) -> [[(IPAddress, Int)]] {
    let zero = IPAddress(family: family, bits: 0)
    let upperHalf = IPAddress(family: family, bits: 1 << UInt128(family.bitCount - 1))
    let covers = [[(zero, 0)], [(zero, 1), (upperHalf, 1)]]
    let unicast = IPAddress(family: .v6, bits: 1 << 125)
    return family == .v6 ? covers + [[(unicast, 3)]] : covers
  }
}
