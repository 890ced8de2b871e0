import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

/// Simulates whole downloaders: 189 seeds that are the same each time, and 21 new ones. `.ci/long simulate` has 100,000.
///
/// `DOWNPIPE_SIMULATION_SEEDS` is another number of seeds in total, `DOWNPIPE_SIMULATION_SEED` a single one, and
/// `DOWNPIPE_SIMULATION_REPORT` the path of a file for the report.
@Suite(.timeLimit(.minutes(24 * 60)))
struct SimulationTests {
  @Test("every invariant holds", arguments: SeedRange.all)
  func invariantsHold(_ range: SeedRange) async throws {
    let report = try await Simulation(range.world.world).run(seeds: range.seeds)
    #expect(report.seeds == SeedRange.single.map { _ in 1 } ?? range.seeds.count)
    try Self.total.add(report)
  }

  private static let total = TotalReport(
    path: ProcessInfo.processInfo.environment["DOWNPIPE_SIMULATION_REPORT"])
}

/// Seeds of one world, which one test case simulates.
struct SeedRange: Sendable, CustomTestStringConvertible {
  let world: SimulatedWorlds
  let seeds: Range<UInt64>

  var testDescription: String { "\(world.rawValue), seeds \(seeds.lowerBound)..<\(seeds.upperBound)" }

  /// The seed that the environment selects.
  static let single = ProcessInfo.processInfo.environment["DOWNPIPE_SIMULATION_SEED"].flatMap(UInt64.init)

  /// The number of seeds of all ranges.
  private static var count: Int {
    ProcessInfo.processInfo.environment["DOWNPIPE_SIMULATION_SEEDS"].flatMap(Int.init) ?? 210
  }

  /// The most seeds of a range, so that the last ones do not run alone.
  private static let most = 200

  /// The fixed seeds, nine of ten, and then new ones.
  static let all: [SeedRange] = {
    if let single { return SimulatedWorlds.allCases.map { SeedRange(world: $0, seeds: single..<single + 1) } }
    // As numbers that are easy to type, far from the fixed ones.
    let first = UInt64.random(in: 1 << 32..<1 << 52)
    print("simulation: new seeds from \(first)")
    let fixed = count * 9 / 10
    return split(from: 0, fixed) + split(from: first, count - fixed)
  }()

  /// Spreads seeds over the worlds.
  private static func split(from first: UInt64, _ count: Int) -> [SeedRange] {
    let worlds = SimulatedWorlds.allCases
    return worlds.enumerated().flatMap { index, world -> [SeedRange] in
      let own = count * (index + 1) / worlds.count - count * index / worlds.count
      return stride(from: 0, to: own, by: most).map { start in
        SeedRange(world: world, seeds: first + UInt64(start)..<first + UInt64(min(start + most, own)))
      }
    }
  }
}

/// Adds the reports of all test cases, and writes the sum to a file.
private final class TotalReport: Sendable {
  private let path: String?
  private let report = Mutex(SimulationReport())

  init(path: String?) { self.path = path }

  func add(_ other: SimulationReport) throws {
    try report.withLock { report in
      report.add(other)
      guard let path else { return }
      try "\(report)\n".write(toFile: path, atomically: true, encoding: .utf8)
    }
  }
}
