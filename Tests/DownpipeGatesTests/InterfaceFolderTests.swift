#if os(Linux)
  import DownpipeGates
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct InterfaceFolderTests {
    typealias Files = SysfsFolder.Interface

    private static let table: [(Files, InterfaceKind)] = [
      (.ethernet, .ethernet),
      (.wifi, .wifi),
      (.cellular, .cellular),
      (.tunnel, .tunnel),
      (.virtual, .virtual),
      // Each of the three signs of Wi-Fi is enough.
      (Files(deviceType: "wlan", entries: ["device"]), .wifi),
      (Files(entries: ["device", "wireless"]), .wifi),
      (Files(entries: ["device", "phy80211"]), .wifi),
      (Files(type: 803), .wifi),
      // Virtual Wi-Fi (mac80211_hwsim) is Wi-Fi.
      (Files(deviceType: "wlan"), .wifi),
      (Files(type: 519, entries: ["device"]), .cellular),
      (Files(type: 65_534, deviceType: "wireguard"), .tunnel),
      (Files(type: 512), .tunnel),
      (Files(type: 778), .tunnel),
      // TAP looks like Ethernet.
      (Files(entries: ["tun_flags"]), .tunnel),
      (Files(deviceType: "bridge", entries: ["bridge"]), .virtual),
      (Files(deviceType: "vlan"), .virtual),
      (Files(deviceType: "bond", entries: ["bonding"]), .virtual),
      (Files(deviceType: "bluetooth", entries: ["device"]), .other),
      (Files(type: 32, entries: ["device"]), .other),
      (Files(type: 772), .loopback),
    ]

    @Test(arguments: table)
    func findsTheKind(files: Files, kind: InterfaceKind) throws {
      let sysfs = try SysfsFolder(["if0": files])
      #expect(InterfaceFolder(sysfs.path).kind(of: "if0") == kind)
    }

    @Test func whatCannotBeReadIsUnknown() throws {
      let sysfs = try SysfsFolder(["if0": .ethernet])
      let folder = InterfaceFolder(sysfs.path)
      #expect(folder.kind(of: "if1") == .unknown)
      #expect(folder.kind(of: "..") == .unknown)
      #expect(folder.kind(of: "../if0") == .unknown)
      try sysfs.write("one", to: "if0/type")
      #expect(folder.kind(of: "if0") == .unknown)
      #expect(InterfaceFolder("/nonexistent").kind(of: "eth0") == .unknown)
    }

    @Test func knowsThisMachine() { #expect(InterfaceFolder(InterfaceFolder.system).kind(of: "lo") == .loopback) }
  }
#endif
