public import DownpipeCore

/// A gate that is open while the download's host is reached over an interface that is allowed.
///
/// ```swift
/// Interfaces(deny: .cellular, "tun*")          // every other interface
/// Interfaces(allow: .wifi, "eth0")             // no other interface
/// Interfaces(allow: .ethernet, deny: "eth1")
/// ```
/// A denied interface is closed even if it is also allowed. Without a list of allowed interfaces, every interface is
/// allowed that is not denied.
///
/// Unlike ``WiFiOnly``, an interface whose kind is not known is closed if the list of allowed ones does not contain it:
/// the list says what is wanted. The rules for routes are those of ``WiFiOnly``: hosts on the machine itself are always
/// open, and a host without a route is closed. Waiting downloads say why: `Interfaces: the default route is over eth1,
/// which is denied`.
public struct Interfaces: Gate {
  /// Interfaces by kind or by name.
  ///
  /// A string literal is a name, or the beginning of names if it ends in `*`: `"eth0"`, `"tun*"`.
  public struct Selector: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    private enum Value: Sendable, Hashable {
      case kinds(Set<InterfaceKind>, String)
      case name(String)
    }

    private let value: Value

    /// Selects an interface by name; all whose name begins with the text before a final `*`.
    public init(_ name: String) { value = .name(name) }
    /// Selects an interface by name; all whose name begins with the text before a final `*`.
    public init(stringLiteral value: String) { self.init(value) }

    private init(_ name: String, _ kinds: InterfaceKind...) { value = .kinds(Set(kinds), name) }

    /// Wi-Fi.
    public static let wifi = Selector("Wi-Fi", .wifi)
    /// Ethernet cables.
    public static let ethernet = Selector("Ethernet", .ethernet)
    /// Mobile networks.
    public static let cellular = Selector("mobile networks", .cellular)
    /// VPNs and other tunnels.
    public static let tunnel = Selector("tunnels", .tunnel)
    /// Virtual interfaces, such as a container's and bridges. Linux only.
    public static let virtual = Selector("virtual interfaces", .virtual)

    /// The kind or the name.
    public var description: String {
      switch value {
      case .kinds(_, let name), .name(let name): name
      }
    }

    fileprivate func contains(_ interface: NetworkInterface) -> Bool {
      switch value {
      case .kinds(let kinds, _): kinds.contains(interface.kind)
      case .name(let name) where name.hasSuffix("*"): interface.name.hasPrefix(name.dropLast())
      case .name(let name): interface.name == name
      }
    }
  }

  /// Identifies the gate in its pipeline; `Interfaces` by default.
  public let id: String
  private let allowed: [Selector]
  private let denied: [Selector]
  private let watch: InterfaceWatch

  /// Creates a gate that does not apply to downloads of the given intents.
  ///
  /// - Parameters:
  ///   - allowed: The allowed interfaces; all when empty.
  ///   - denied: The denied interfaces.
  ///   - intents: Intents of downloads that may use every interface; none by default.
  ///   - id: Identifies the gate in its pipeline.
  public init(
    allow allowed: Selector..., deny denied: Selector..., unless intents: Intent..., id: String = "Interfaces"
  ) {
    self.init(allowed, denied, InterfaceWatch(Exemption(intents)), id: id)
  }

  /// Creates a gate that does not apply to some downloads.
  ///
  /// - Parameters:
  ///   - allowed: The allowed interfaces; all when empty.
  ///   - denied: The denied interfaces.
  ///   - exempts: Whether a download may use every interface. It must be pure and cheap, and can be called on any thread.
  ///   - id: Identifies the gate in its pipeline.
  public init(
    allow allowed: Selector..., deny denied: Selector..., unless exempts: @escaping @Sendable (Candidate) -> Bool,
    id: String = "Interfaces"
  ) {
    self.init(allowed, denied, InterfaceWatch(Exemption(exempts)), id: id)
  }

  private init(_ allowed: [Selector], _ denied: [Selector], _ watch: InterfaceWatch, id: String) {
    self.id = id
    self.allowed = allowed
    self.denied = denied
    self.watch = watch
  }

  package init(
    allow allowed: Selector..., deny denied: Selector..., unless intents: Intent..., routes: any RouteSource,
    time: any TimeSource
  ) {
    self.init(
      allowed, denied, InterfaceWatch(Exemption(intents), routes: RouteWatch(routes, time: time)), id: "Interfaces")
  }

  /// The allowed and the denied interfaces, and the exempt downloads.
  public var summary: String {
    func list(_ title: String, _ selectors: [Selector]) -> String? {
      selectors.isEmpty ? nil : "\(title) \(selectors.map(\.description).joined(separator: " and "))"
    }
    let settings = [list("allow", allowed), list("deny", denied)].compactMap(\.self).joined(separator: ", ")
    return watch.exemption.summary(beside: settings)
  }

  /// Publishes the rule for the current routes and then each change, until the task is cancelled.
  ///
  /// While the routes cannot be read, the gate is open.
  /// - Throws: `DownloadError` with `.network`, `.permission` or `.tooManyOpenFiles` when the routes cannot be read at
  ///   the start; `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let (allowed, denied) = (allowed, denied)
    try await watch.run(for: name, publish) { interface in
      if denied.contains(where: { $0.contains(interface) }) { return .refused(", which is denied") }
      if allowed.isEmpty || interface.kind == .loopback { return .allowed }
      return allowed.contains { $0.contains(interface) } ? .allowed : .refused(", which is not allowed")
    }
  }
}
