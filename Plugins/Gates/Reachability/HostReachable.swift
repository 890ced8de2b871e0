public import DownpipeCore

/// A gate that is open while a host accepts TCP connections.
///
/// Use it for a machine that is only there at times: one behind a VPN, a NAS at home, a proxy. A route to it says too
/// little; ``Online`` is enough for servers on the internet, whose failures the retry policy handles.
///
/// ```swift
/// HostReachable("nas.example.org", port: 443)
/// HostReachable("proxy.example.org", port: 3128)
/// HostReachable("nas.example.org", port: 443).unless { $0.host != "nas.example.org" }
/// ```
/// The gate applies to all downloads. It resolves the name, opens a connection, and closes it without sending anything:
/// every 10 seconds while it is closed, and every 60 seconds while it is open. A check takes 5 seconds at most. The gate
/// closes after two failed checks in a row, the second one a second after the first, so that one lost packet suspends
/// nothing. Waiting downloads say why: `HostReachable: nas.example.org:443 did not answer within 5 s`.
///
/// Whether the host serves what is wanted is not checked. The check does not use a proxy.
public struct HostReachable: Gate {
  /// The longest time of a check.
  package static let timeLimit: Duration = .seconds(5)
  /// The time between two checks.
  package static let interval = (
    closed: Duration.seconds(10), doubtful: Duration.seconds(1), open: Duration.seconds(60)
  )

  /// Identifies the gate in its pipeline; `HostReachable` by default.
  public let id: String
  private let host: String
  private let port: UInt16
  private let time: any TimeSource
  private let connect: @Sendable (String, UInt16) throws -> Void

  /// Creates a gate.
  ///
  /// - Parameters:
  ///   - host: A name, or an address without brackets.
  ///   - port: The TCP port.
  ///   - id: Identifies the gate in its pipeline.
  public init(_ host: String, port: UInt16, id: String = "HostReachable") {
    self.init(host, port: port, id: id, time: SystemTime()) { host, port in
      try TCPConnect.check(host, port: port, within: Self.timeLimit)
    }
  }

  package init(
    _ host: String, port: UInt16, id: String = "HostReachable", time: any TimeSource,
    connect: @escaping @Sendable (String, UInt16) throws -> Void
  ) {
    self.id = id
    self.host = host
    self.port = port
    self.time = time
    self.connect = connect
  }

  /// The host and the port.
  public var summary: String { place }

  private var place: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// Publishes that the host has not been checked yet, the result of the first check, and then each change, until the
  /// task is cancelled.
  /// - Throws: `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let (host, port, connect) = (host, port, connect)
    let check = BoundedCheck(time: time) { try connect(host, port) }
    var published = GateRule.Verdict.closed("\(name): \(place) has not been checked yet")
    publish(GateRule(published))
    var isDoubtful = false
    while true {
      let failure = try await check.failure(within: Self.timeLimit)
      if failure != nil, published == .open, !isDoubtful {
        isDoubtful = true
        try await time.sleep(for: Self.interval.doubtful)
        continue
      }
      isDoubtful = false
      let verdict = failure.map { GateRule.Verdict.closed("\(name): \(place) \($0)") } ?? .open
      if verdict != published {
        published = verdict
        publish(GateRule(verdict))
      }
      try await time.sleep(for: verdict == .open ? Self.interval.open : Self.interval.closed)
    }
  }
}
