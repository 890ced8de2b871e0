package import DownpipeCore

/// Follows the routes of the system for a gate.
package struct RouteWatch: Sendable {
  /// The time to wait for more changes, since an address and its routes change one after the other. A change must be
  /// published within 100 ms.
  package static let settlingTime: Duration = .milliseconds(50)
  /// The time between two reads where the system does not report changes.
  package static let interval: Duration = .seconds(5)

  /// `nil` where the platform reports paths instead of routes.
  private let routes: (any RouteSource)?
  private let time: any TimeSource

  package init(_ routes: (any RouteSource)?, time: any TimeSource) {
    self.routes = routes
    self.time = time
  }

  /// The routes of this machine.
  static var system: RouteWatch {
    #if os(Linux)
      RouteWatch(LinuxRoutes(), time: SystemTime())
    #else
      RouteWatch(nil, time: SystemTime())
    #endif
  }

  /// The routes that were published last.
  private enum Sight: Equatable {
    case nothing
    case unknown
    case table(RouteTable, isTold: Bool)
  }

  /// Publishes a rule for the current routes and then for each change, until the task is cancelled.
  ///
  /// - Parameters:
  ///   - publish: receives the rules. While the routes cannot be read, it receives an open one.
  ///   - rule: returns the rule for some routes; it adds the text to each reason.
  /// - Throws: the error of the first read; `CancellationError`.
  package func run(
    _ publish: @Sendable (GateRule) -> Void, rule: @Sendable (RouteTable, String) -> GateRule
  ) async throws {
    guard let routes else { return try await Self.runOnPaths(publish, rule: rule) }
    var sight = Sight.nothing
    // Listening starts before reading, so that no change is missed.
    if let changes = routes.changes() {
      try await look(at: routes, isTold: true, &sight, publish, rule)
      for await _ in changes {
        try await time.sleep(for: Self.settlingTime)
        try await look(at: routes, isTold: true, &sight, publish, rule)
      }
      try Task.checkCancellation()
    }
    while true {
      try await look(at: routes, isTold: false, &sight, publish, rule)
      try await time.sleep(for: Self.interval)
    }
  }

  /// Reads the routes, repeatedly if that fails, and publishes the rule if it may have changed.
  private func look(
    at routes: any RouteSource, isTold: Bool, _ sight: inout Sight,
    _ publish: @Sendable (GateRule) -> Void, _ rule: @Sendable (RouteTable, String) -> GateRule
  ) async throws {
    while true {
      do {
        let table = try routes.read()
        let new = Sight.table(table, isTold: isTold)
        if new != sight {
          sight = new
          let remark =
            isTold
            ? "" : " (checked every \(Self.interval.components.seconds) s, since the system does not report changes)"
          publish(rule(table, remark))
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
    private static func runOnPaths(
      _ publish: @Sendable (GateRule) -> Void, rule: @Sendable (RouteTable, String) -> GateRule
    ) async throws {
      throw DownloadError(.network, "routes cannot be read on this platform")
    }
  #endif
}
