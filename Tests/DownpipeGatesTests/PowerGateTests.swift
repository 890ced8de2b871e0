#if os(Linux)
  import DownpipeCore
  import DownpipeGates
  import DownpipeTesting
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct PowerGateTests {
    typealias Supplies = [String: [String: String]]

    private func folder(_ supplies: Supplies) throws -> SysfsFolder {
      let sysfs = try SysfsFolder()
      for (name, files) in supplies {
        for (file, text) in files { try sysfs.write(text, to: "\(name)/\(file)") }
      }
      return sysfs
    }

    private static let onBattery: Supplies = [
      "AC": ["type": "Mains", "online": "0"],
      "BAT0": ["type": "Battery", "status": "Discharging", "capacity": "71", "scope": "System"],
    ]

    private static let table: [(Supplies, PowerState)] = [
      ([:], PowerState(isOnMains: true)),
      ([:].merging(onBattery) { $1 }, PowerState(isOnMains: false, charge: 71)),
      (
        ["AC": ["type": "Mains", "online": "1"], "BAT0": ["type": "Battery", "status": "Charging", "capacity": "5"]],
        PowerState(isOnMains: true, charge: 5)
      ),
      // USB-C with power delivery.
      (
        ["ucsi": ["type": "USB", "online": "2"], "BAT0": ["type": "Battery", "status": "Discharging"]],
        PowerState(isOnMains: true)
      ),
      // Two batteries, one of them in use.
      (
        [
          "BAT0": ["type": "Battery", "status": "Unknown", "capacity": "80"],
          "BAT1": ["type": "Battery", "status": "Discharging", "capacity": "20"],
        ], PowerState(isOnMains: false, charge: 50)
      ),
      // A mouse, and an empty bay.
      (
        [
          "hidpp_battery_0": ["type": "Battery", "scope": "Device", "status": "Discharging", "capacity": "3"],
          "BAT1": ["type": "Battery", "present": "0", "capacity": "0"],
        ], PowerState(isOnMains: true)
      ),
      (["ups": ["type": "UPS", "status": "Discharging"]], PowerState(isOnMains: false)),
      (["BAT0": ["type": "Battery", "status": "Full", "capacity": "100"]], PowerState(isOnMains: true, charge: 100)),
      (["BAT0": ["type": "Battery", "status": "Unknown", "capacity": "many"]], PowerState()),
    ]

    @Test(arguments: table)
    func readsSysfs(supplies: Supplies, state: PowerState) async throws {
      let sysfs = try folder(supplies)
      #expect(try await LinuxPower(sysfs.path).read() == state)
    }

    @Test func aMachineWithoutTheFolderHasMainsPower() async throws {
      #expect(try await LinuxPower("/nonexistent").read() == PowerState(isOnMains: true))
    }

    @Test func followsTheMains() async throws {
      let sysfs = try folder(Self.onBattery)
      let time = VirtualTime()
      let watch = GateWatch(PowerGate(source: LinuxPower(sysfs.path), time: time))
      #expect(await watch.verdict() == .closed("PowerGate: the machine runs on its battery, at 71 %"))
      try sysfs.write("1", to: "AC/online")
      await time.sleepers(atLeast: 1)
      #expect(time.pendingSleeps == [PowerGate.interval])
      time.advance(by: PowerGate.interval)
      #expect(await watch.verdict() == .open)
    }

    @Test func followsTheCharge() async throws {
      let sysfs = try folder(Self.onBattery)
      let time = VirtualTime()
      let gate = PowerGate(.charge(atLeast: 30), source: LinuxPower(sysfs.path), time: time)
      #expect(gate.summary == "mains power, or 30 % charge")
      let watch = GateWatch(gate)
      #expect(await watch.verdict() == .open)
      try sysfs.write("29", to: "BAT0/capacity")
      await time.sleepers(atLeast: 1)
      time.advance(by: PowerGate.interval)
      #expect(
        await watch.verdict()
          == .closed("PowerGate: the battery is at 29 %, and 30 % are needed without mains power"))
      try sysfs.write("1", to: "AC/online")
      await time.sleepers(atLeast: 1)
      time.advance(by: PowerGate.interval)
      #expect(await watch.verdict() == .open)
    }

    @Test func whatIsNotKnownDoesNotClose() async throws {
      struct Unknown: PowerSource {
        func read() async throws -> PowerState { PowerState(charge: 1) }
      }
      struct Failing: PowerSource {
        func read() async throws -> PowerState { throw DownloadError(.storage, "unreadable") }
      }
      for source in [Unknown(), Failing()] as [any PowerSource] {
        #expect(await GateWatch(PowerGate(source: source, time: VirtualTime())).verdict() == .open)
        let charge = PowerGate(.charge(atLeast: 50), source: source, time: VirtualTime())
        #expect(await GateWatch(charge).verdict() == .open)
      }
    }

    @Test func conforms() async throws {
      try await GateConformance(PowerGate()).run()
      let sysfs = try folder(Self.onBattery)
      let time = VirtualTime()
      try await GateConformance(PowerGate(source: LinuxPower(sysfs.path), time: time)) {
        await time.sleepers(atLeast: 1)
        try sysfs.write("1", to: "AC/online")
        time.advance(by: PowerGate.interval)
      }.run()
    }
  }
#endif
