#if os(Linux)
  import DownpipeCore
  import DownpipeGates
  import HangLimit
  import Testing

  /// The gate with the tables of the kernel, in a new network namespace.
  @Suite(
    .endsHangs,
    .enabled(if: NetworkNamespace.isExpected, NetworkNamespace.absence))
  struct NetworkNamespaceTests {
    @Test func followsTheKernel() async throws {
      let namespace = try NetworkNamespace()
      defer { namespace.leave() }
      let watch = GateWatch(Online(routes: namespace.routes, time: SystemTime()))
      #expect(await watch.verdict() == .closed("Online: there is no default route"))

      try namespace.ip("addr add 192.0.2.2/24 dev near")
      try namespace.ip("route add default via 192.0.2.1")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("route del default")
      try await expect(.closed("Online: there is no default route"), "example.org", from: watch)
      try namespace.ip("route add unreachable 203.0.113.0/24", "route add default via 192.0.2.1")
      try await expect(.closed("Online: the route to the address rejects packets"), "203.0.113.7", from: watch)
      // Routes stay when a cable is unplugged.
      try namespace.ip("link set far down")
      try await expect(
        .closed("Online: the default route is over near, which has no link"), "example.org", from: watch)
      try namespace.ip("link set far up")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("link set near down")
      try await expect(.closed("Online: there is no default route"), "example.org", from: watch)
    }

    @Test func followsIPv6() async throws {
      let namespace = try NetworkNamespace()
      defer { namespace.leave() }
      let watch = GateWatch(Online(routes: namespace.routes, time: SystemTime()))
      let host = "[2001:db8:9::1]:443"
      #expect(await watch.verdict(host) == .closed("Online: there is no route to the address"))
      try namespace.ip(
        "-6 addr add 2001:db8::2/64 dev near nodad", "-6 route add default via 2001:db8::1 dev near")
      try await expect(.open, host, from: watch)
      try namespace.ip("-6 route add blackhole 2001:db8:9::/48")
      try await expect(.closed("Online: the route to the address rejects packets"), host, from: watch)
    }

    /// The default route changes from Ethernet to Wi-Fi to none.
    @Test func followsTheDefaultRouteFromEthernetToWiFiToNone() async throws {
      let sysfs = try SysfsFolder(["eth0": .ethernet, "wlan0": .wifi])
      let namespace = try NetworkNamespace(sysfs: sysfs.path)
      defer { namespace.leave() }
      try namespace.addCable("eth0", "192.0.2.2/24")
      try namespace.addCable("wlan0", "198.51.100.2/24")
      try namespace.ip("route add default via 192.0.2.1")

      let watch = GateWatch(WiFiOnly(routes: namespace.routes, time: SystemTime()))
      #expect(await watch.verdict() == .closed("WiFiOnly: the default route is over eth0"))
      // The machine is shared with other tests: of some changes, the fastest one counts.
      var times: [Duration] = []
      for _ in 0..<5 {
        try namespace.ip("route replace default via 198.51.100.1")
        times.append(try await expect(.open, "example.org", from: watch))
        try namespace.ip("route del default")
        times.append(
          try await expect(.closed("WiFiOnly: there is no default route"), "example.org", from: watch))
        try namespace.ip("route add default via 192.0.2.1")
        times.append(
          try await expect(.closed("WiFiOnly: the default route is over eth0"), "example.org", from: watch))
      }
      // The promise is 0.1 s. Time decides no test.
      print("verdicts after changes of routes: the fastest came after \(try #require(times.min()))")
    }

    /// A link that goes down, addresses that go away, and hosts that need no default route.
    @Test func followsLinksAndAddresses() async throws {
      let sysfs = try SysfsFolder(["eth0": .ethernet, "wlan0": .wifi])
      let namespace = try NetworkNamespace(sysfs: sysfs.path)
      defer { namespace.leave() }
      try namespace.addCable("eth0", "192.0.2.2/24")
      try namespace.addCable("wlan0", "198.51.100.2/24")
      let watch = GateWatch(WiFiOnly(routes: namespace.routes, time: SystemTime()))
      // The links are up a moment later.
      var rule = try #require(await watch.next())
      while rule.verdict(for: Candidate(host: "198.51.100.7")) != .open { rule = try #require(await watch.next()) }
      let latest = rule
      func verdict(_ host: String) -> GateRule.Verdict { latest.verdict(for: Candidate(host: host)) }
      #expect(verdict("127.0.0.1") == .open)
      #expect(verdict("192.0.2.2:80") == .open, "the machine's own address")
      #expect(verdict("198.51.100.7:80") == .open, "directly connected over Wi-Fi")
      #expect(verdict("192.0.2.7:80") == .closed("WiFiOnly: the route to the address is over eth0"))
      #expect(verdict("example.org") == .closed("WiFiOnly: there is no default route"))

      try namespace.ip("route add default via 198.51.100.1")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("link set wlan0far down")
      try await expect(
        .closed("WiFiOnly: the default route is over wlan0, which has no link"), "example.org", from: watch)
      try namespace.ip("link set wlan0far up")
      try await expect(.open, "example.org", from: watch)
      try namespace.ip("addr flush dev wlan0")
      try await expect(.closed("WiFiOnly: there is no default route"), "example.org", from: watch)
      try namespace.ip("link del eth0")
      try await expect(.closed("WiFiOnly: there is no route to the address"), "192.0.2.7:80", from: watch)
    }

    /// A VPN and a container's cable are not held.
    @Test func tunnelsAndContainersAreNotHeld() async throws {
      let sysfs = try SysfsFolder(["tun0": .tunnel, "veth0": .virtual, "wwan0": .cellular])
      let namespace = try NetworkNamespace(sysfs: sysfs.path)
      defer { namespace.leave() }
      try namespace.addCable("veth0", "192.0.2.2/24")
      try namespace.addCable("tun0", "198.51.100.2/24")
      try namespace.addCable("wwan0", "203.0.113.2/24")
      try namespace.ip("route add default via 192.0.2.1")
      let wifi = GateWatch(WiFiOnly(routes: namespace.routes, time: SystemTime()))
      let unmetered = GateWatch(Unmetered(routes: namespace.routes, time: SystemTime()))
      #expect(await wifi.verdict() == .open)
      #expect(await unmetered.verdict() == .open)
      try namespace.ip("route replace default via 203.0.113.1")
      try await expect(.closed("WiFiOnly: the default route is over wwan0"), "example.org", from: wifi)
      try await expect(
        .closed("Unmetered: the default route is over wwan0, a mobile network"), "example.org", from: unmetered)
      // OpenVPN adds two halves and leaves the default route.
      try namespace.ip("route add 0.0.0.0/1 via 198.51.100.1", "route add 128.0.0.0/1 via 198.51.100.1")
      try await expect(.open, "example.org", from: wifi)
      try await expect(.open, "example.org", from: unmetered)
    }

    /// Waits for a verdict and ignores others, of incomplete changes. The suite has a time limit.
    ///
    /// - Returns: the time until the verdict.
    @discardableResult
    private func expect(_ wanted: GateRule.Verdict, _ host: String, from watch: GateWatch) async throws -> Duration {
      let start = ContinuousClock.now
      while let verdict = await watch.verdict(host) {
        if verdict == wanted { return ContinuousClock.now - start }
      }
      Issue.record("the watch ended before \(wanted)")
      return .zero
    }
  }

  extension NetworkNamespace {
    /// Adds a cable with an address at this end. Its other end is named `…far`.
    fileprivate func addCable(_ name: String, _ address: String) throws {
      try ip(
        "link add \(name) type veth peer name \(name)far", "addr add \(address) dev \(name)", "link set \(name) up",
        "link set \(name)far up")
    }
  }
#endif
