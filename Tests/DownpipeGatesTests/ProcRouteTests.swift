import DownpipeGates
import HangLimit
import Testing

@Suite(.endsHangs)
struct ProcRouteTests {
  // Addresses in network byte order, as a little-endian kernel prints them.
  private static let ipv4 = """
    Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
    eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
    eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
    tun0\t0000000A\t00000000\t0001\t0\t0\t0\t0000FEFF\t0\t0\t0
    eth0\t097100CB\t010200C0\t0007\t0\t0\t0\tFFFFFFFF\t0\t0\t0
    *\t0000A8C0\t00000000\t0200\t0\t0\t0\t0000FFFF\t0\t0\t0
    *\t000010AC\t00000000\t0201\t0\t0\t0\t0000F0FF\t0\t0\t0
    down0\t00000B0A\t00000000\t0000\t0\t0\t0\t0000FFFF\t0\t0\t0
    """

  private static let ipv6 = """
    fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
    00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
    00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
    """

  private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text: text)) }

  #if _endian(little)
    @Test func readsIPv4() throws {
      #expect(
        RouteTable(ipv4: Self.ipv4, ipv6: nil).routes == [
          Route(try address("0.0.0.0"), length: 0, interface: "eth0", metric: 100),
          Route(try address("192.0.2.0"), length: 24, interface: "eth0"),
          Route(try address("10.0.0.0"), length: 15, interface: "tun0"),
          Route(try address("203.0.113.9"), length: 32, interface: "eth0"),
          Route(try address("172.16.0.0"), length: 12, interface: nil, isReject: true),
        ])
    }
  #endif

  @Test func readsIPv6() throws {
    #expect(
      RouteTable(ipv4: nil, ipv6: Self.ipv6).routes == [
        Route(try address("fd00::"), length: 64, interface: "eth0", metric: 256),
        Route(try address("::"), length: 0, interface: "eth0", metric: 1024),
        Route(try address("::"), length: 0, interface: "lo", metric: .max, isReject: true),
      ])
  }

  @Test func readsBothTables() {
    let table = RouteTable(ipv4: Self.ipv4, ipv6: Self.ipv6)
    #expect(table.routes.count == 8)
    #expect(!table.isTruncated)
    #expect(table.obstacleToNames == nil)
  }

  @Test(arguments: [
    "", "\n\n\n", "garbage", "eth0", "eth0\t0\t0\t0\t0\t0\t0",
    "eth0\t-0000000\t00000000\t0001\t0\t0\t0\t00000000", "eth0\t+1\t00000000\t0001\t0\t0\t0\t00000000",
    "eth0\t000000000000\t00000000\t0001\t0\t0\t0\t00000000", "eth0\t00000000\t00000000\tXYZ\t0\t0\t0\t00000000",
    "eth0\t00000000\t00000000\t0001\t0\t0\t-1\t00000000", "eth0\t00000000\t00000000\t0001\t0\t0\t99999999999\t00000000",
    // A mask with a gap.
    "eth0\t00000000\t00000000\t0001\t0\t0\t0\t00FF00FF",
    // Down.
    "eth0\t00000000\t00000000\t0000\t0\t0\t0\t00000000",
    "\u{0}\u{1}\u{2}\u{FFFD}", "٠٠٠٠٠٠٠٠\t٠\t٠\t٠\t٠\t٠\t٠\t٠",
    "eth0" + String(repeating: "x", count: 1_000) + "\t00000000\t00000000\t0001\t0\t0\t0\t00000000",
  ])
  func oddIPv4LinesAreSkipped(line: String) {
    let text = "Iface\tDestination\n\(line)\nok0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n"
    #expect(RouteTable(ipv4: text, ipv6: nil).routes.map(\.interface) == ["ok0"])
  }

  @Test(arguments: [
    "0000", "00000000000000000000000000000000", "+0000000000000000000000000000000 00 0 00 0 0 0 0 1 eth0",
    "00000000000000000000000000000000 81 00000000000000000000000000000000 00 0 0 0 0 00000001 eth0",
    "0000000000000000000000000000000g 00 00000000000000000000000000000000 00 0 0 0 0 00000001 eth0",
    "000000000000000000000000000000000 00 00000000000000000000000000000000 00 0 0 0 0 00000001 eth0",
    // Only for one source address.
    "00000000000000000000000000000000 00 20010db8000000000000000000000000 20 0 0 0 0 00000001 eth0",
    // Neither up nor rejecting.
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 0 0 0 0 00000000 eth0",
  ])
  func oddIPv6LinesAreSkipped(line: String) {
    let good = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 0 0 0 0 00000001 ok0"
    #expect(RouteTable(ipv4: nil, ipv6: "\(line)\n\(good)").routes.map(\.interface) == ["ok0"])
  }

  @Test func hugeTablesAreTruncated() {
    let line = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
    let table = RouteTable(ipv4: String(repeating: line, count: RouteTable.routeLimit + 1), ipv6: nil)
    #expect(table.routes.count == RouteTable.routeLimit)
    #expect(table.isTruncated)
    let exact = RouteTable(ipv4: String(repeating: line, count: RouteTable.routeLimit), ipv6: nil)
    #expect(!exact.isTruncated)
  }
}
