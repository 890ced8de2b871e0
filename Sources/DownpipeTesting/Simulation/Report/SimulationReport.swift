/// What simulations have reached; see ``Simulation/run(seeds:)``.
public struct SimulationReport: Sendable, CustomStringConvertible {
  /// The number of simulations.
  public internal(set) var seeds = 0
  /// The number of simulations that were run twice, with the same history.
  public internal(set) var repetitions = 0
  /// The number of jobs.
  public internal(set) var jobs = 0
  /// The number of deaths of processes.
  public internal(set) var crashes = 0
  /// The virtual time.
  public internal(set) var time = Duration.zero
  /// The number of different histories.
  public var histories: Int { hashes.count }
  /// How often each kind of event occurred: transitions of the lifecycle, decisions about replies, reasons to stop, faults,
  /// commands.
  public internal(set) var counts: [String: Int] = [:]
  private var hashes: Set<UInt64> = []

  /// Creates an empty report.
  public init() {}

  mutating func add(_ outcome: SimulationOutcome) {
    seeds += 1
    jobs += outcome.steps
    crashes += outcome.crashes.count
    time += outcome.time
    counts.merge(outcome.coverage, uniquingKeysWith: +)
    hashes.insert(outcome.hash)
  }

  /// Adds the results of another report.
  public mutating func add(_ other: SimulationReport) {
    seeds += other.seeds
    repetitions += other.repetitions
    jobs += other.jobs
    crashes += other.crashes
    time += other.time
    counts.merge(other.counts, uniquingKeysWith: +)
    hashes.formUnion(other.hashes)
  }

  /// The figures, one in a line.
  public var description: String {
    let head = [
      "\(seeds) seeds, \(repetitions) of them twice", "\(histories) different histories", "\(jobs) jobs",
      "\(crashes) crashes", "\(time.components.seconds) s of virtual time",
    ]
    return (head + counts.sorted { $0.key < $1.key }.map { "\($0.value)  \($0.key)" }).joined(separator: "\n")
  }
}
