import DownpipeCore
import DownpipeGates
import DownpipeTesting
import HangLimit
import Testing

/// ``WiFiOnly``, ``Unmetered`` and ``Interfaces`` on made-up routes.
@Suite(.endsHangs)
struct InterfaceGateTests {
  private static let everywhere = IPAddress(family: .v4, bits: 0)

  private static func table(_ kind: InterfaceKind?, _ name: String = "if0") -> RouteTable {
    RouteTable([Route(everywhere, length: 0, interface: name)], kinds: kind.map { [name: $0] } ?? [:])
  }

  private static func route(_ text: String, _ length: Int, _ interface: String, metric: UInt32 = 0) -> Route {
    Route(IPAddress(text: text) ?? everywhere, length: length, interface: interface, metric: metric)
  }

  private func wifi(_ table: RouteTable, _ host: String = "example.org") async -> GateRule.Verdict? {
    await GateWatch(WiFiOnly(routes: FakeRoutes(table), time: VirtualTime())).verdict(host)
  }

  private static let kinds: [(InterfaceKind?, wifi: Bool, unmetered: Bool)] = [
    (.wifi, true, true), (.ethernet, false, true), (.cellular, false, false), (.other, false, true),
    (.tunnel, true, true), (.virtual, true, true), (.unknown, true, true), (nil, true, true),
  ]

  @Test(arguments: kinds)
  func eachKindHasItsVerdict(kind: InterfaceKind?, wifi: Bool, unmetered: Bool) async {
    let table = Self.table(kind)
    for host in ["example.org", "203.0.113.7:80", "nas.local"] {
      let title = host == "nas.local" ? "the route to the local network" : "the default route"
      #expect(await self.wifi(table, host) == (wifi ? .open : .closed("WiFiOnly: \(title) is over if0")))
      let gate = Unmetered(routes: FakeRoutes(table), time: VirtualTime())
      #expect(
        await GateWatch(gate).verdict(host)
          == (unmetered ? .open : .closed("Unmetered: \(title) is over if0, a mobile network")))
    }
  }

  @Test func hostsOnTheMachineAreAlwaysOpen() async {
    for table in [Self.table(.ethernet), RouteTable()] {
      for host in ["localhost:8080", "127.0.0.1", "[::1]:443", ""] { #expect(await wifi(table, host) == .open) }
    }
  }

  @Test func withoutARouteTheGateIsClosed() async {
    #expect(await wifi(RouteTable()) == .closed("WiFiOnly: there is no default route"))
    #expect(await wifi(RouteTable(), "192.0.2.1") == .closed("WiFiOnly: there is no route to the address"))
    var down = Self.table(.wifi)
    down.downInterfaces = ["if0"]
    #expect(await wifi(down) == .closed("WiFiOnly: the default route is over if0, which has no link"))
  }

  @Test func aDirectlyConnectedHostNeedsNoDefaultRoute() async {
    var table = RouteTable([Self.route("192.0.2.0", 24, "wlan0"), Self.route("198.51.100.0", 24, "eth0")])
    table.kinds = ["wlan0": .wifi, "eth0": .ethernet]
    #expect(await wifi(table, "192.0.2.9") == .open)
    #expect(await wifi(table, "198.51.100.9") == .closed("WiFiOnly: the route to the address is over eth0"))
    // One allowed interface is enough for the local network.
    #expect(await wifi(table, "nas.local") == .open)
    #expect(await wifi(table) == .closed("WiFiOnly: there is no default route"))
  }

  @Test func theBetterDefaultRouteDecides() async {
    var table = RouteTable([
      Self.route("0.0.0.0", 0, "eth0", metric: 100), Self.route("0.0.0.0", 0, "wlan0", metric: 600),
    ])
    table.kinds = ["wlan0": .wifi, "eth0": .ethernet]
    #expect(await wifi(table) == .closed("WiFiOnly: the default route is over eth0"))
    table.downInterfaces = ["eth0"]
    #expect(await wifi(table) == .open)
  }

  @Test func bothProtocolsMustBeAllowed() async {
    var table = RouteTable([Self.route("0.0.0.0", 0, "wlan0"), Self.route("::", 0, "wwan0")])
    table.kinds = ["wlan0": .wifi, "wwan0": .cellular]
    #expect(await wifi(table) == .closed("WiFiOnly: the default route is over wwan0"))
    #expect(await wifi(table, "203.0.113.1") == .open)
    #expect(await wifi(table, "[2001:db8::1]:443") == .closed("WiFiOnly: the default route is over wwan0"))
  }

  @Test func routesThatWereNotReadDoNotClose() async {
    let table = RouteTable(
      [Self.route("0.0.0.0", 0, "eth0")], isTruncated: true, kinds: ["eth0": .ethernet])
    #expect(await wifi(table) == .open)
  }

  @Test func whatTheSystemCountsAsMeteredIsClosed() async {
    var table = Self.table(.wifi)
    table.metered = ["if0": "which the system counts as expensive"]
    let gate = Unmetered(routes: FakeRoutes(table), time: VirtualTime())
    #expect(
      await GateWatch(gate).verdict()
        == .closed("Unmetered: the default route is over if0, which the system counts as expensive"))
    #expect(await wifi(table) == .open)
  }

  @Test func interfacesAreAllowedAndDeniedByKindAndName() async {
    func verdict(_ kind: InterfaceKind?, _ name: String, _ gate: (FakeRoutes) -> Interfaces) async -> String? {
      let watch = GateWatch(gate(FakeRoutes(Self.table(kind, name))))
      guard case .closed(let reason) = await watch.verdict() else { return nil }
      return reason
    }
    let time = VirtualTime()
    let deny = { (routes: FakeRoutes) in Interfaces(deny: .cellular, "tun*", routes: routes, time: time) }
    #expect(await verdict(.ethernet, "eth0", deny) == nil)
    #expect(await verdict(nil, "eth0", deny) == nil)
    #expect(await verdict(.cellular, "x", deny) == "Interfaces: the default route is over x, which is denied")
    #expect(await verdict(nil, "tun3", deny) == "Interfaces: the default route is over tun3, which is denied")
    let allow = { (routes: FakeRoutes) in Interfaces(allow: .wifi, "eth0", routes: routes, time: time) }
    #expect(await verdict(.wifi, "wlp3s0", allow) == nil)
    #expect(await verdict(.ethernet, "eth0", allow) == nil)
    #expect(await verdict(nil, "eth01", allow) == "Interfaces: the default route is over eth01, which is not allowed")
    let both = { (routes: FakeRoutes) in Interfaces(allow: .ethernet, deny: "eth1", routes: routes, time: time) }
    #expect(await verdict(.ethernet, "eth1", both) == "Interfaces: the default route is over eth1, which is denied")
    #expect(await verdict(.ethernet, "eth2", both) == nil)
  }

  @Test func exemptDownloadsUseEveryNetwork() async throws {
    let routes = FakeRoutes(Self.table(.ethernet))
    let gate = WiFiOnly(unless: .userInitiated, Intent("urgent"), routes: routes, time: VirtualTime())
    let rule = try #require(await GateWatch(gate).next())
    for (intent, isOpen) in [(Intent.userInitiated, true), (Intent("urgent"), true), (.prefetch, false)] {
      let verdict = rule.verdict(for: Candidate(host: "example.org", intent: intent))
      #expect((verdict == .open) == isOpen, "\(intent)")
    }
  }

  @Test func publishesEachChange() async {
    let routes = FakeRoutes(Self.table(.ethernet))
    let time = VirtualTime()
    let watch = GateWatch(WiFiOnly(routes: routes, time: time))
    #expect(await watch.verdict() == .closed("WiFiOnly: the default route is over if0"))
    for (table, verdict) in [
      (Self.table(.wifi), GateRule.Verdict.open), (RouteTable(), .closed("WiFiOnly: there is no default route")),
    ] {
      routes.set(table)
      routes.tell()
      await time.sleepers(atLeast: 1)
      time.advance(by: RouteWatch.settlingTime)
      #expect(await watch.verdict() == verdict)
    }
  }

  @Test func printsItsSettings() {
    #expect(WiFiOnly().summary == "")
    #expect(WiFiOnly(unless: .userInitiated, .prefetch).summary == "unless userInitiated or prefetch")
    #expect(WiFiOnly(unless: { $0.priority == .high }).summary == "unless a closure exempts the download")
    #expect(Unmetered(unless: .userInitiated, id: "a").id == "a")
    #expect(
      Interfaces(allow: .wifi, "eth0", deny: "tun*", unless: .silent).summary
        == "allow Wi-Fi and eth0, deny tun*, unless silent")
  }

  @Test(arguments: kinds.map(\.0))
  func conforms(kind: InterfaceKind?) async throws {
    func routes() -> FakeRoutes { FakeRoutes(Self.table(kind), tells: false) }
    let time = VirtualTime()
    try await GateConformance(WiFiOnly(unless: .silent, routes: routes(), time: time)).run()
    try await GateConformance(Unmetered(routes: routes(), time: time)).run()
    try await GateConformance(Interfaces(allow: .wifi, deny: "eth0", routes: routes(), time: time)).run()
  }

  @Test func conformOnThisMachine() async throws {
    try await GateConformance(WiFiOnly(unless: .userInitiated)).run()
    try await GateConformance(Unmetered(unless: { $0.tags.isEmpty })).run()
    try await GateConformance(Interfaces(deny: .cellular)).run()
  }
}
