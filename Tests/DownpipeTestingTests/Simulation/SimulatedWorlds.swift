import DownpipeCore
import DownpipeTesting
import Testing

/// The worlds in which the engine is simulated.
enum SimulatedWorlds: String, Sendable, CaseIterable, CustomTestStringConvertible {
  /// Nothing fails.
  case calm
  /// Servers and network fail.
  case faulty
  /// The same, and the process is killed.
  case kill
  /// The same, and the machine loses its power; flushed bytes survive it.
  case power
  /// Servers and network fail, for two processes with one ledger and one disk.
  case twoProcesses
  /// The same for three processes, as on three machines: their clocks are an hour apart, and one lacks something.
  case threeProcesses
  /// Servers, network, disk, ledger and steps fail, the calendar jumps, and the process is killed.
  case hostile

  var testDescription: String { rawValue }

  var world: SimulatedWorld {
    var world = self == .calm ? SimulatedWorld.calm : self == .hostile ? .hostile : .faulty
    switch self {
    case .calm, .faulty: break
    case .kill, .hostile: world.crashes = .kill
    case .power:
      world.crashes = .powerLoss
      world.durability = .power
    case .twoProcesses: world.processes = 2
    case .threeProcesses:
      world.processes = 3
      world.clockDifference = .seconds(3600)
      world.lacks = Set(SimulatedWorld.Lack.allCases)
      // Three hosts that cannot be reached are the machine's fault.
      var third = world.servers[0]
      (third.host, third.files) = ("three.example", [SimulatedFile(path: "/c0", size: 90_000, validation: .strong)])
      world.servers.append(third)
    }
    return world
  }
}
