import DownpipeCore

/// Follows the routes for a gate that decides by the interface over which a host is reached.
struct InterfaceWatch: Sendable {
  let exemption: Exemption
  private let namesNeedDefaultRoute: Bool
  private let routes: RouteWatch

  init(_ exemption: Exemption, namesNeedDefaultRoute: Bool = true, routes: RouteWatch = .system) {
    self.exemption = exemption
    self.namesNeedDefaultRoute = namesNeedDefaultRoute
    self.routes = routes
  }

  /// Publishes the rule for the current routes and then for each change, until the task is cancelled.
  func run(
    for name: String, _ publish: @Sendable (GateRule) -> Void,
    verdict: @escaping @Sendable (NetworkInterface) -> InterfaceVerdict
  ) async throws {
    try await routes.run(publish) { table, remark in
      exemption.apply(
        to: table.rule(
          name: name, namesNeedDefaultRoute: namesNeedDefaultRoute, remark: remark, interfaces: verdict))
    }
  }
}
