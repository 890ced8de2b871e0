import DownpipeCore
import DownpipeGates
import HangLimit
import Testing

@Suite(.endsHangs)
struct RouteTableTests {
  private func route(
    _ prefix: String, _ length: Int, over interface: String? = "eth0", metric: UInt32 = 0, rejects: Bool = false
  ) -> Route {
    let address = IPAddress(text: prefix) ?? IPAddress(family: .v4, bits: 0)
    return Route(address, length: length, interface: interface, metric: metric, isReject: rejects)
  }

  private func obstacle(_ table: RouteTable, _ address: String, zone: String? = nil) throws -> String? {
    table.obstacle(to: try #require(IPAddress(text: address)), zone: zone)
  }

  @Test func theLongestPrefixDecides() throws {
    let table = RouteTable([
      route("0.0.0.0", 0), route("10.0.0.0", 8, over: nil), route("10.1.0.0", 16, over: "vpn0"),
      route("10.1.2.0", 24, rejects: true),
    ])
    #expect(try obstacle(table, "203.0.113.1") == nil)
    #expect(try obstacle(table, "10.9.9.9") == "the route to the address rejects packets")
    #expect(try obstacle(table, "10.1.9.9") == nil)
    #expect(try obstacle(table, "10.1.2.9") == "the route to the address rejects packets")
    #expect(try obstacle(table, "2001:db8::1") == "there is no route to the address")
  }

  @Test func theSmallerMetricDecidesAmongEquals() throws {
    let refused = RouteTable([route("10.0.0.0", 8, metric: 5), route("10.0.0.0", 8, metric: 1, rejects: true)])
    #expect(try obstacle(refused, "10.0.0.1") != nil)
    let open = RouteTable([route("10.0.0.0", 8, metric: 5, rejects: true), route("10.0.0.0", 8, metric: 1)])
    #expect(try obstacle(open, "10.0.0.1") == nil)
  }

  @Test func aRouteWithoutALinkIsIgnored() throws {
    let table = RouteTable([route("0.0.0.0", 0), route("10.0.0.0", 8, over: "eth1")], downInterfaces: ["eth0"])
    #expect(try obstacle(table, "203.0.113.1") == "eth0 has no link")
    #expect(try obstacle(table, "10.0.0.1") == nil)
    #expect(table.obstacleToNames == "the default route is over eth0, which has no link")
    #expect(table.obstacleToNeighbours == nil)
    let second = RouteTable(
      [route("0.0.0.0", 0, metric: 100), route("0.0.0.0", 0, over: "wlan0", metric: 600)], downInterfaces: ["eth0"])
    #expect(second.obstacleToNames == nil)
    #expect(try obstacle(second, "203.0.113.1") == nil)
  }

  @Test func aZoneNamesTheInterface() throws {
    let table = RouteTable([route("fe80::", 64), route("fe80::", 64, over: "eth1")], downInterfaces: ["eth1"])
    #expect(try obstacle(table, "fe80::1", zone: "eth0") == nil)
    #expect(try obstacle(table, "fe80::1", zone: "eth1") == "eth1 has no link")
    #expect(try obstacle(table, "fe80::1", zone: "eth2") == "there is no route to the address")
  }

  @Test func ownAddressesNeedNoRoute() throws {
    let table = RouteTable(ownAddresses: [IPAddress(family: .v4, bits: 0x0A00_0001)])
    #expect(try obstacle(table, "10.0.0.1") == nil)
    #expect(try obstacle(table, "10.0.0.2") != nil)
  }

  @Test func theRejectingRouteOfLinuxIsNotADefaultRoute() throws {
    let table = RouteTable([route("::", 0, over: "lo", metric: .max, rejects: true)])
    #expect(try obstacle(table, "2001:db8::1") == "there is no route to the address")
    #expect(table.obstacleToNames == "there is no default route")
  }

  @Test func eitherProtocolHasADefaultRoute() {
    #expect(RouteTable([route("0.0.0.0", 0)]).obstacleToNames == nil)
    #expect(RouteTable([route("::", 0)]).obstacleToNames == nil)
    #expect(RouteTable().obstacleToNames == "there is no default route")
    #expect(RouteTable([route("10.0.0.0", 8)]).obstacleToNames == "there is no default route")
  }

  @Test func twoHalvesMakeADefaultRoute() {
    #expect(RouteTable([route("0.0.0.0", 1), route("128.0.0.0", 1)]).obstacleToNames == nil)
    #expect(RouteTable([route("0.0.0.0", 1)]).obstacleToNames != nil)
    #expect(RouteTable([route("::", 1), route("8000::", 1)]).obstacleToNames == nil)
    #expect(RouteTable([route("::", 1), route("128.0.0.0", 1)]).obstacleToNames != nil)
    #expect(RouteTable([route("2000::", 3)]).obstacleToNames == nil)
  }

  @Test func aRouteWithoutAnInterfaceIsNotADefaultRoute() {
    #expect(RouteTable([route("0.0.0.0", 0, rejects: true)]).obstacleToNames == "there is no default route")
    #expect(RouteTable([route("0.0.0.0", 0, over: nil)]).obstacleToNames == "there is no default route")
    #expect(RouteTable([route("0.0.0.0", 0, over: "lo")]).obstacleToNames == "there is no default route")
  }

  @Test func neighboursNeedAnyRoute() {
    #expect(RouteTable([route("10.0.0.0", 8)]).obstacleToNeighbours == nil)
    let alone = RouteTable([route("127.0.0.0", 8, over: "lo"), route("ff00::", 8), route("::", 0, rejects: true)])
    #expect(alone.obstacleToNeighbours == "there is no route to any other machine")
  }

  @Test func aTruncatedTableDoesNotCloseTheGate() throws {
    let table = RouteTable(isTruncated: true)
    #expect(try obstacle(table, "203.0.113.1") == nil)
    #expect(table.obstacleToNames == nil)
    #expect(table.obstacleToNeighbours == nil)
  }

  @Test(arguments: [
    ("localhost:80", true, GateRule.Verdict.open), ("", true, .open),
    ("example.org", true, .closed("Online: there is no default route!")), ("example.org", false, .open),
    ("printer.LOCAL:631", true, .open), ("10.0.0.1:80", true, .open),
    ("[2001:db8::1]:80", true, .closed("Online: there is no route to the address!")),
  ])
  func theRuleLooksAtTheHost(host: String, namesNeedDefaultRoute: Bool, verdict: GateRule.Verdict) {
    let table = RouteTable([route("10.0.0.0", 8)])
    let rule = table.rule(name: "Online", namesNeedDefaultRoute: namesNeedDefaultRoute, remark: "!")
    #expect(rule.verdict(for: Candidate(host: host)) == verdict)
  }
}
