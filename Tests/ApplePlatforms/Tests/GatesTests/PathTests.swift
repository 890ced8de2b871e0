import DownpipeCore
import DownpipeGates
import Network
import Testing

/// A gate that follows the paths that a test reports.
struct PathWatch {
  let paths: AsyncStream<NWPath>.Continuation
  private let rules: AsyncStream<GateRule>
  private let task: Task<Void, any Error>

  init(_ gate: any Gate) {
    let (reported, paths) = AsyncStream.makeStream(of: NWPath.self)
    let (rules, publish) = AsyncStream.makeStream(of: GateRule.self)
    self.paths = paths
    self.rules = rules
    task = NWPathMonitor.$paths.withValue(reported) {
      Task { try await gate.watch { publish.yield($0) } }
    }
  }

  /// Reports a path, and returns the verdicts for hosts.
  func verdicts(_ path: NWPath, _ hosts: String...) async -> [GateRule.Verdict] {
    paths.yield(path)
    for await rule in rules { return hosts.map { rule.verdict(for: Candidate(host: $0)) } }
    return []
  }

  /// Cancels the gate's task; returns what it throws.
  func end() async -> (any Error)? {
    task.cancel()
    return await task.result.error
  }
}

extension Result {
  var error: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}

@Suite(.timeLimit(.minutes(5)))
struct PathTests {
  private static let wifi = NWInterface(.wifi, name: "en0")
  private static let cable = NWInterface(.wiredEthernet, name: "en5")
  private static let mobile = NWInterface(.cellular, name: "pdp_ip0")
  private static let vpn = NWInterface(.other, name: "utun3")
  private static let loopback = NWInterface(.loopback, name: "lo0")

  @Test(arguments: [
    (NWPath.UnsatisfiedReason.notAvailable, "there is no network"),
    (.cellularDenied, "cellular data is switched off for this app"),
    (.wifiDenied, "Wi-Fi is switched off for this app"),
    (.localNetworkDenied, "the local network is switched off for this app"),
    (.vpnInactive, "the VPN that is required is not active"),
  ])
  func onlineNamesTheObstacle(reason: NWPath.UnsatisfiedReason, text: String) async {
    let watch = PathWatch(Online())
    let verdicts = await watch.verdicts(
      NWPath(.unsatisfied, reason: reason), "example.org", "192.0.2.1", "localhost:80")
    #expect(verdicts == [.closed("Online: \(text)"), .closed("Online: \(text)"), .open])
    #expect(await watch.end() is CancellationError)
  }

  @Test func onlineFollowsThePath() async {
    let watch = PathWatch(Online())
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.wifi]), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.unsatisfied), "a") != [.open])
    // A connection brings the VPN up.
    #expect(await watch.verdicts(NWPath(.requiresConnection), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.wifi]), "a") == [.open])
    #expect(await watch.end() is CancellationError)
  }

  @Test func wifiOnly() async {
    let watch = PathWatch(WiFiOnly())
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.wifi, Self.mobile]), "a", "192.0.2.1") == [.open, .open])
    #expect(
      await watch.verdicts(NWPath(.satisfied, [Self.mobile]), "a", "[2001:db8::1]:80", "localhost")
        == [
          .closed("WiFiOnly: the default route is over pdp_ip0"),
          .closed("WiFiOnly: the default route is over pdp_ip0"), .open,
        ])
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.cable]), "a") != [.open])
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.vpn, Self.mobile]), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.requiresConnection, [Self.wifi]), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.unsatisfied, [Self.wifi]), "a") != [.open])
    // The system does not say what the path leads over.
    #expect(await watch.verdicts(NWPath(.satisfied), "a") == [.open])
    #expect(await watch.end() is CancellationError)
  }

  @Test func unmetered() async {
    let watch = PathWatch(Unmetered())
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.wifi]), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.cable]), "a") == [.open])
    #expect(await watch.verdicts(NWPath(.satisfied, [Self.mobile]), "a") != [.open])
    for (isExpensive, text) in [(true, "which the system counts as expensive"), (false, "which is in Low Data Mode")] {
      let path = NWPath(.satisfied, [Self.wifi], isExpensive: isExpensive, isConstrained: true)
      let verdict = await watch.verdicts(path, "a").first
      guard case .closed(let reason)? = verdict else {
        Issue.record("\(String(describing: verdict))")
        continue
      }
      #expect(reason.hasPrefix("Unmetered: ") && reason.contains("en0") && reason.contains(text), "\(reason)")
    }
    #expect(await watch.end() is CancellationError)
  }
}
