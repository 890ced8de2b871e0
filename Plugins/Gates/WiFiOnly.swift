public import DownpipeCore

/// A gate that is open while the download's host is reached over Wi-Fi.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   WiFiOnly()
/// }
/// ```
/// `WiFiOnly(unless: .userInitiated)` holds back only requests with another intent, such as `.prefetch`: `.userInitiated`
/// is the default intent of a request.
///
/// The gate closes only when the system says that the route leads over something else, or that there is no route. Waiting
/// downloads say so: `WiFiOnly: the default route is over eth0`.
///
/// | interface | `WiFiOnly` | ``Unmetered`` |
/// |---|---|---|
/// | Wi-Fi | open | open |
/// | Ethernet | closed | open |
/// | mobile network | closed | closed |
/// | Bluetooth, InfiniBand and other known media | closed | open |
/// | VPN or another tunnel (TUN, TAP, WireGuard, PPP, GRE) | open | open |
/// | virtual (veth of a container, bridge, VLAN, bond) | open | open |
/// | not known | open | open |
/// | no route to the host | closed | closed |
///
/// - Hosts on the machine itself are always open. A directly connected host needs no default route: the interface of
///   its own route decides.
/// - A host name needs a default route. If IPv4 and IPv6 have default routes over different interfaces, both must be
///   allowed.
/// - What a tunnel or a virtual interface is carried by is not known. To hold these downloads as well, add
///   ``Interfaces``.
///
/// On Linux, the kernel reports changes of routes, links and addresses (rtnetlink), and `/sys/class/net` has the kinds of
/// the interfaces. A change is published within 100 ms. On Apple platforms the gate uses `NWPathMonitor`. A system whose
/// routes cannot be read has an open gate.
public struct WiFiOnly: Gate {
  /// Identifies the gate in its pipeline; `WiFiOnly` by default.
  public let id: String
  private let watch: InterfaceWatch

  /// Creates a gate that does not apply to downloads of the given intents.
  ///
  /// - Parameters:
  ///   - intents: Intents of downloads that may use every network; none by default. Requests that state no intent have
  ///     `.userInitiated`.
  ///   - namesNeedDefaultRoute: Whether a host name needs a default route. Use `false` in a network without a default
  ///     route whose names lead to its own machines.
  ///   - id: Identifies the gate in its pipeline.
  public init(unless intents: Intent..., namesNeedDefaultRoute: Bool = true, id: String = "WiFiOnly") {
    self.id = id
    watch = InterfaceWatch(Exemption(intents), namesNeedDefaultRoute: namesNeedDefaultRoute)
  }

  /// Creates a gate that does not apply to some downloads.
  ///
  /// - Parameters:
  ///   - exempts: Whether a download may use every network. It must be pure and cheap, and can be called on any thread.
  ///   - namesNeedDefaultRoute: Whether a host name needs a default route. Use `false` in a network without a default
  ///     route whose names lead to its own machines.
  ///   - id: Identifies the gate in its pipeline.
  public init(
    unless exempts: @escaping @Sendable (Candidate) -> Bool, namesNeedDefaultRoute: Bool = true,
    id: String = "WiFiOnly"
  ) {
    self.id = id
    watch = InterfaceWatch(Exemption(exempts), namesNeedDefaultRoute: namesNeedDefaultRoute)
  }

  package init(unless intents: Intent..., routes: any RouteSource, time: any TimeSource) {
    id = "WiFiOnly"
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
    switch interface.kind {
    case .wifi, .tunnel, .virtual, .loopback, .unknown: .allowed
    case .ethernet, .cellular, .other: .refused("")
    }
  }
}
