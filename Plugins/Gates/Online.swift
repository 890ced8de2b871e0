public import DownpipeCore

/// A gate that is open while the system has a route to the download's host.
///
/// - Hosts on the machine itself (`localhost`, 127.0.0.0/8, ::1), and URLs without a host, are always open.
/// - An address needs a route to it. Of several, the one with the longest prefix decides, over an interface with a
///   link.
/// - A name needs a default route for IPv4 or IPv6. A name that ends in `.local` needs any route.
///
/// ```swift
/// let downloader = try await Downloader { HTTPSource(); FileStore("~/Downloads"); Online() }
/// ```
/// The gate sends nothing over the network. A route does not guarantee a connection: the retry policy handles failures
/// beyond it. If downloads use a proxy, only the proxy needs a route, so do not use this gate.
///
/// On Linux the gate reads the main route tables, and the kernel reports changes (rtnetlink). Where a sandbox forbids
/// that, it reads the tables every 5 seconds and mentions this in its reasons. On Apple platforms it uses
/// `NWPathMonitor`.
public struct Online: Gate {
  private let routes: RouteWatch?
  private let namesNeedDefaultRoute: Bool
  /// Identifies the gate in its pipeline; `Online` by default.
  public let id: String

  /// Creates a gate.
  ///
  /// - Parameters:
  ///   - namesNeedDefaultRoute: Whether a host name needs a default route. Use `false` in a network without a default
  ///     route in which all host names resolve to local machines; then any route is enough.
  ///   - id: Identifies the gate in its pipeline.
  public init(namesNeedDefaultRoute: Bool = true, id: String = "Online") {
    #if os(Linux)
      self.init(namesNeedDefaultRoute: namesNeedDefaultRoute, id: id, routes: LinuxRoutes(), time: SystemTime())
    #else
      self.init(namesNeedDefaultRoute: namesNeedDefaultRoute, id: id, routes: nil, time: SystemTime())
    #endif
  }

  package init(
    namesNeedDefaultRoute: Bool = true, id: String = "Online", routes: (any RouteSource)?, time: any TimeSource
  ) {
    self.id = id
    self.namesNeedDefaultRoute = namesNeedDefaultRoute
    self.routes = routes.map { RouteWatch($0, time: time) }
  }

  /// `names need no default route`, if that was set.
  public var summary: String { namesNeedDefaultRoute ? "" : "names need no default route" }

  /// Publishes the rule for the current routes and then each change, until the task is cancelled.
  ///
  /// While the routes cannot be read, the gate is open.
  /// - Throws: `DownloadError` with `.network`, `.permission` or `.tooManyOpenFiles` when the routes cannot be read at
  ///   the start; `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    guard let routes else { return try await watchSystem(publish) }
    let (name, namesNeedDefaultRoute) = (name, namesNeedDefaultRoute)
    try await routes.run(publish) { table, remark in
      table.rule(name: name, namesNeedDefaultRoute: namesNeedDefaultRoute, remark: remark)
    }
  }

  #if !canImport(Network)
    private func watchSystem(_ publish: @Sendable (GateRule) -> Void) async throws {
      throw DownloadError(.network, "\(name): routes cannot be read on this platform")
    }
  #endif
}
