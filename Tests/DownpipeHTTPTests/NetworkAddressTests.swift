#if LIBCURL
  import Testing

  @testable import DownpipeHTTP

  struct NetworkAddressTests {
    @Test(arguments: [
      "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0",
      "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1",
      "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:4860:4860::8888",
    ])
    func publicAddresses(_ text: String) throws {
      #expect(try #require(NetworkAddress(text)).isPublic)
    }

    @Test(arguments: [
      "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1",
      "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1",
      "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
      "255.255.255.255", "::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1",
      "2001::1", "3fff::1", "100::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::127.0.0.1",
      "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::8.8.8.8", "2002:7f00:1::1", "2002:a00:1::", "5f00::1",
      "4000::1",
    ])
    func addressesThatAreBlocked(_ text: String) throws {
      let address = try #require(NetworkAddress(text))
      #expect(!address.isPublic)
    }

    @Test(arguments: ["", "localhost", "1.2.3", "1.2.3.4.5", "[::1]", "fe80::1%lo", "0x7f000001", "127.1"])
    func otherTextIsNoAddress(_ text: String) {
      #expect(NetworkAddress(text) == nil)
    }

    @Test(arguments: ["127.0.0.1", "::1", "2001:db8::1", "::ffff:1.2.3.4"])
    func describesItself(_ text: String) throws {
      #expect(try #require(NetworkAddress(text)).description == text)
    }
  }
#endif
