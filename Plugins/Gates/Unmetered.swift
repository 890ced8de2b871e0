public import DownpipeCore

/// A gate that is open while the download's host is reached over a network whose use costs nothing.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   Unmetered()
/// }
/// ```
/// The gate closes only when the system says that the network is metered, or that there is no route; ``WiFiOnly`` has
/// the table of interfaces and the rules for routes.
///
/// - **Linux**: only mobile networks (`wwan`) are known to be metered. The kernel does not know whether a Wi-Fi network
///   or an Ethernet cable leads to a metered connection, such as a telephone that shares its own. NetworkManager may
///   know, but is not asked.
/// - **Apple platforms**: the gate is closed while `NWPath` is expensive (mobile networks, personal hotspots) or
///   constrained (Low Data Mode).
public struct Unmetered: Gate {
  /// Identifies the gate in its pipeline; `Unmetered` by default.
  public let id: String
  private let watch: InterfaceWatch

  /// Creates a gate that does not apply to downloads of the given intents.
  ///
  /// - Parameters:
  ///   - intents: Intents of downloads that may use metered networks; none by default. Requests that state no intent
  ///     have `.userInitiated`.
  ///   - namesNeedDefaultRoute: Whether a host name needs a default route. Use `false` in a network without a default
  ///     route whose names lead to its own machines.
  ///   - id: Identifies the gate in its pipeline.
  public init(unless intents: Intent..., namesNeedDefaultRoute: Bool = true, id: String = "Unmetered") {
    self.id = id
    watch = InterfaceWatch(Exemption(intents), namesNeedDefaultRoute: namesNeedDefaultRoute)
  }

  /// Creates a gate that does not apply to some downloads.
  ///
  /// - Parameters:
  ///   - exempts: Whether a download may use metered networks. It must be pure and cheap, and can be called on any thread.
  ///   - namesNeedDefaultRoute: Whether a host name needs a default route. Use `false` in a network without a default
  ///     route whose names lead to its own machines.
  ///   - id: Identifies the gate in its pipeline.
  public init(
    unless exempts: @escaping @Sendable (Candidate) -> Bool, namesNeedDefaultRoute: Bool = true,
    id: String = "Unmetered"
  ) {
    self.id = id
    watch = InterfaceWatch(Exemption(exempts), namesNeedDefaultRoute: namesNeedDefaultRoute)
  }

  package init(unless intents: Intent..., routes: any RouteSource, time: any TimeSource) {
    id = "Unmetered"
    watch = InterfaceWatch(Exemption(intents), routes: RouteWatch(routes, time: time))
  }

  /// The exempt downloads.
  public var summary: String { watch.exemption.summary() }

  /// Publishes the rule for the current routes and then each change, until the task is cancelled.
  ///
  /// While the routes cannot be read, the gate is open.
  /// - Throws: `DownloadError` with `.network`, `.permission` or `.tooManyOpenFiles` when the routes cannot be read at
  ///   the start; `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    try await watch.run(for: name, publish, verdict: Self.verdict)
  }

  @Sendable private static func verdict(_ interface: NetworkInterface) -> InterfaceVerdict {
    if let reason = interface.metered { return .refused(", \(reason)") }
    return interface.kind == .cellular ? .refused(", a mobile network") : .allowed
  }
}
