import DownpipeGates
import HangLimit
import Testing

@Suite(.endsHangs)
struct IPAddressTests {
  @Test(arguments: [
    ("192.0.2.1", IPAddress(family: .v4, bits: 0xC000_0201)),
    ("255.255.255.255", .init(family: .v4, bits: 0xFFFF_FFFF)),
    ("::1", .init(family: .v6, bits: 1)), ("2001:db8::", .init(family: .v6, bits: 0x2001_0DB8 << 96)),
    ("::ffff:192.0.2.1", .init(family: .v4, bits: 0xC000_0201)),
  ])
  func readsTheUsualForms(text: String, address: IPAddress) {
    #expect(IPAddress(text: text) == address)
  }

  @Test(arguments: [
    "", "1.2.3", "1.2.3.4.5", "256.1.1.1", "::g", "1::2::3", "[::1]", "example.org", "0x7f.1", "127.0.0.1\u{0}x",
    String(repeating: "1", count: 100_000), "１.２.３.４", " 1.2.3.4",
  ])
  func refusesTheRest(text: String) {
    #expect(IPAddress(text: text) == nil)
  }

  @Test(arguments: [
    ("127.0.0.1", true), ("127.255.255.254", true), ("0.0.0.0", true), ("::1", true), ("::", true),
    ("::ffff:127.0.0.1", true), ("128.0.0.1", false), ("126.255.255.255", false), ("::2", false), ("fe80::1", false),
  ])
  func knowsLoopback(text: String, isLoopback: Bool) throws {
    #expect(try #require(IPAddress(text: text)).isLoopback == isLoopback)
  }

  @Test(arguments: [
    ("192.0.2.1", "192.0.2.0", 24, true), ("192.0.3.1", "192.0.2.0", 24, false), ("192.0.3.1", "192.0.2.0", 23, true),
    ("203.0.113.9", "0.0.0.0", 0, true), ("192.0.2.1", "192.0.2.1", 32, true), ("192.0.2.2", "192.0.2.1", 32, false),
    ("2001:db8::1", "::", 0, true), ("2001:db8::1", "2001:db8::", 32, true), ("2001:db9::1", "2001:db8::", 32, false),
    ("2001:db8::1", "2001:db8::1", 128, true), ("192.0.2.1", "::", 0, false), ("2001:db8::1", "0.0.0.0", 0, false),
    ("192.0.2.1", "0.0.0.0", 33, false), ("192.0.2.1", "0.0.0.0", -1, false),
  ])
  func comparesPrefixes(text: String, prefix: String, length: Int, begins: Bool) throws {
    let address = try #require(IPAddress(text: text))
    let start = try #require(IPAddress(text: prefix))
    #expect(address.begins(with: start, length: length) == begins)
  }
}

@Suite(.endsHangs)
struct RoutedHostTests {
  @Test(arguments: [
    "", "localhost", "LocalHost", "localhost:8080", "localhost.", "a.b.localhost", "127.0.0.1", "127.8.7.6:80", "::1",
    "[::1]", "[::1]:443", "0.0.0.0", "[::ffff:127.0.0.1]:80",
  ])
  func theMachineItself(text: String) {
    #expect(RoutedHost(text) == .local)
  }

  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1", nil), ("192.0.2.1:8080", "192.0.2.1", nil), ("2001:db8::1", "2001:db8::1", nil),
    ("[2001:db8::1]:443", "2001:db8::1", nil), ("[2001:DB8::1]", "2001:db8::1", nil),
    ("[fe80::1%25eth0]:80", "fe80::1", "eth0"), ("fe80::1%eth0", "fe80::1", "eth0"), ("fe80::1%25", "fe80::1", nil),
  ])
  func addresses(text: String, address: String, zone: String?) throws {
    #expect(RoutedHost(text) == .address(try #require(IPAddress(text: address)), zone: zone))
  }

  @Test(arguments: [
    ("example.org", "example.org"), ("example.org:8080", "example.org"), ("example.org.", "example.org"),
    ("notlocalhost", "notlocalhost"), ("127.1", "127.1"), ("1.2.3.4.example", "1.2.3.4.example"), ("a:b:c", "a:b:c"),
    ("localhost.example.org", "localhost.example.org"), ("münchen.example", "münchen.example"),
  ])
  func names(text: String, name: String) {
    #expect(RoutedHost(text) == .name(name))
  }
}
