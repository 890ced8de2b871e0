public import DownpipeCore

/// The surroundings of a simulated downloader: servers, network, disk and processes, and what happens to them.
///
/// ```swift
/// var world = SimulatedWorld.calm            // no faults
/// world.servers[0].faults[.cut] = 0.3
/// world.crashes = .kill                      // the process dies between two jobs, and starts again
/// ```
/// A world is a description. What really happens in it depends on the seed.
public struct SimulatedWorld: Sendable, Hashable {
  /// How processes die.
  public enum Crash: Sendable, Hashable {
    /// The process dies; what it has written is on the disk.
    case kill
    /// The machine loses its power: writes that were not flushed are lost, whole or in part, and all its processes die.
    case powerLoss
  }

  /// What a machine may lack.
  public enum Lack: Sendable, Hashable, CaseIterable {
    /// Nothing can be written.
    case disk
    /// The source has no credentials.
    case credentials
    /// No server can be reached.
    case network
  }

  /// The servers.
  public var servers: [SimulatedServer]
  /// The number of processes with a downloader, on the same ledger and disk.
  public var processes = 1
  /// How processes die; `nil` if they do not.
  public var crashes: Crash?
  /// The mean number of jobs between two deaths.
  public var jobsBetweenCrashes = 1_000
  /// The most deaths in a simulation.
  public var mostCrashes = 3
  /// What the disk promises about bytes that were flushed.
  public var durability = Durability.process
  /// The free space of the disk in bytes; `nil` for any amount.
  public var diskSpace: Int64?
  /// The probability that an operation of the disk fails.
  public var diskFailures = 0.0
  /// The probability that an operation of the disk takes up to a second.
  public var slowDisk = 0.0
  /// The probability that a call of the ledger fails, before or after it has taken effect.
  public var ledgerFailures = 0.0
  /// The probability that a call of the ledger takes up to a second.
  public var slowLedger = 0.0
  /// The probability that the network goes away before a request; it comes back after up to a minute.
  public var networkLosses = 0.0
  /// The probability that a step fails, early or late, or returns what is not there.
  public var stepFailures = 0.0
  /// The probability that a step or an observer blocks for up to two minutes, also when its task is cancelled.
  public var blockingStages = 0.0
  /// The largest jump of the machine's calendar, forward or back; zero if it does not jump.
  public var dateJumps = Duration.zero
  /// How far the clocks of the processes are apart, as if each of them had a machine of its own: that of the first process is
  /// right, that of the second one ahead by this time, that of the third one behind, and so on. A ledger needs a clock of its
  /// own for this, as ``SimulatedMachine/ledger`` has it; see ``SimulatedMachine/clockError``.
  public var clockDifference = Duration.zero
  /// What the second process may lack until the faults end, as if it had a machine of its own: one of them, by the seed.
  public var lacks: Set<Lack> = []
  /// When commands and faults have ended, the time after which everything must have finished.
  public var patience = Duration.seconds(6 * 3600)

  /// Creates a world without faults.
  public init(servers: [SimulatedServer]) { self.servers = servers }

  /// Two servers with a few files of up to 1 MiB each, and copies of two files of the other server, without faults.
  public static var calm: SimulatedWorld {
    func files(_ prefix: String, copies: [SimulatedFile]) -> [SimulatedFile] {
      let kinds: [SimulatedFile.Validation] = [.strong, .date, .weak, .none]
      return kinds.enumerated().map { index, kind in
        SimulatedFile(path: "/\(prefix)\(index)", size: [700_000, 90_000, 300_000, 1_000][index], validation: kind)
      } + copies
    }
    return SimulatedWorld(servers: [
      SimulatedServer(
        host: "one.example",
        files: files(
          "a",
          copies: [
            SimulatedFile(path: "/b0", size: 700_000, validation: .date, copyOf: "two.example/b0"),
            SimulatedFile(path: "/b2", size: 300_000, validation: .strong, copyOf: "two.example/b2"),
          ])),
      SimulatedServer(
        host: "two.example",
        files: files(
          "b",
          copies: [
            SimulatedFile(path: "/a0", size: 700_000, validation: .strong, copyOf: "one.example/a0"),
            SimulatedFile(path: "/a1", size: 90_000, validation: .none, copyOf: "one.example/a1"),
          ])),
    ])
  }

  /// The calm world with all faults of servers and network, at moderate rates.
  public static var faulty: SimulatedWorld {
    var world = calm
    for index in world.servers.indices {
      for fault in ServerFault.allCases { world.servers[index].faults[fault] = 0.02 }
      world.servers[index].faults[.cut] = 0.1
      world.servers[index].faults[.wrongCopy] = 0.15
      // Only few requests can have these.
      for fault in [ServerFault.logInPage, .otherBytes] { world.servers[index].faults[fault] = 0.05 }
      for fault in [ServerFault.ignoredRange, .refusedRange, .wrongRange, .wrongTotal, .rangeAsWhole] {
        world.servers[index].faults[fault] = 0.04
      }
      world.servers[index].maximumConnections = 3
    }
    world.servers[1].files[1].validation = .lying
    world.servers[1].files[2].announcesLength = false
    world.servers[0].files[2].servesRanges = false
    world.networkLosses = 0.02
    return world
  }

  /// The faulty world with a disk and a ledger that fail and are slow, and a clock that is set.
  public static var hostile: SimulatedWorld {
    var world = faulty
    world.diskFailures = 0.005
    world.slowDisk = 0.05
    world.ledgerFailures = 0.01
    world.slowLedger = 0.1
    world.stepFailures = 0.02
    world.blockingStages = 0.01
    world.dateJumps = .seconds(7200)
    world.diskSpace = 2_500_000
    return world
  }
}
