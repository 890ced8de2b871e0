public import DownpipeCore

/// Open while there is a route to the download's host, as the system says it.
///
/// - Hosts on the machine itself (`localhost`, 127.0.0.0/8, ::1), and URLs without a host, are always open.
/// - An address needs a route of its own: the one with the longest prefix, over an interface that has a link.
/// - A name needs a default route, for IPv4 or IPv6; a name below `.local` any route.
///
/// ```swift
/// let downloader = try await Downloader { HTTPSource(); FileStore("~/Downloads"); Online() }
/// ```
/// The gate sends nothing over the network. A route is not yet a connection: what a router further on does, the
/// retry policy deals with. Behind a proxy it is the proxy that needs a route: leave the gate out.
///
/// On Linux it reads the main route tables and hears of changes from the kernel (rtnetlink); where that is refused
/// it looks every few seconds, and says so in its reasons. On Apple platforms it is what `NWPathMonitor` says.
public struct Online: Gate {
  private let routes: (any RouteSource)?
  private let time: any TimeSource
  private let namesNeedDefaultRoute: Bool
  /// What tells it from other gates of the pipeline.
  public let id: String

  /// Several changes that belong together, such as an address and its routes, are looked at once.
  package static let settlingTime: Duration = .milliseconds(100)
  /// How often to look where the system does not tell.
  package static let interval: Duration = .seconds(5)

  /// Makes a gate.
  ///
  /// - Parameters:
  ///   - namesNeedDefaultRoute: whether a name needs a default route. Say `false` in a network
  ///     without one, whose names lead to its own machines: any route will do then.
  ///   - id: tells it from other gates of the same pipeline.
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
    self.routes = routes
    self.time = time
  }

  /// What a name needs, where that was set.
  public var summary: String { namesNeedDefaultRoute ? "" : "names need no default route" }

  /// Publishes what the system says, at once and after each change, until the task is cancelled.
  ///
  /// While routes cannot be read the gate is open, since it does not know.
  /// - Throws: ``DownloadError`` with `.network` when they cannot be read to begin with; `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    if let routes {
      try await watch(routes, publish)
    } else {
      try await watchSystem(publish)
    }
  }

  /// What was published last.
  private enum Sight: Equatable {
    case nothing
    case unknown
    case table(RouteTable, isTold: Bool)
  }

  private func watch(_ routes: any RouteSource, _ publish: @Sendable (GateRule) -> Void) async throws {
    var sight = Sight.nothing
    // Listening begins before reading, so that no change falls between the two.
    if let changes = routes.changes() {
      try await look(at: routes, isTold: true, &sight, publish)
      for await _ in changes {
        try await time.sleep(for: Self.settlingTime)
        try await look(at: routes, isTold: true, &sight, publish)
      }
      try Task.checkCancellation()
    }
    while true {
      try await look(at: routes, isTold: false, &sight, publish)
      try await time.sleep(for: Self.interval)
    }
  }

  /// Reads the routes, again and again if need be, and publishes the rule if it may have changed.
  private func look(
    at routes: any RouteSource, isTold: Bool, _ sight: inout Sight, _ publish: @Sendable (GateRule) -> Void
  ) async throws {
    while true {
      do {
        let table = try routes.read()
        let new = Sight.table(table, isTold: isTold)
        if new != sight {
          sight = new
          let remark =
            isTold ? "" : " (looked at every \(Self.interval.components.seconds) s: the system sends no word)"
          publish(table.rule(name: name, namesNeedDefaultRoute: namesNeedDefaultRoute, remark: remark))
        }
        return
      } catch {
        if sight == .nothing { throw error }
        if sight != .unknown {
          sight = .unknown
          publish(.open)
        }
      }
      try await time.sleep(for: Self.interval)
    }
  }

  #if !canImport(Network)
    private func watchSystem(_ publish: @Sendable (GateRule) -> Void) async throws {
      throw DownloadError(.network, "\(name): routes cannot be read on this platform")
    }
  #endif
}
