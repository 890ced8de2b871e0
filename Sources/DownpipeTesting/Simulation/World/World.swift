import DownpipeCore
import Foundation
import Synchronization

/// A world while it is simulated: its clock, its chance, and everything that its processes share.
final class World: Sendable {
  /// The sources of chance. Each has its own numbers, so that a command more or less does not change all others.
  enum Chance: UInt64, Sendable, CaseIterable {
    case network = 1, disk, ledger, crashes, crashTimes, backOff, steps, pauses, stages, machines
  }

  private struct State: Sendable {
    var generators: [SeededGenerator]
    var areFaultsOver = false
    var dateOffset = Duration.zero
    var hasJumped = false
    var failures = 0
    var violations: [Violation] = []
  }

  /// A violation of an invariant.
  struct Violation: Sendable {
    let invariant: Invariant.Name
    let text: String
    let time: Duration
    let step: Int
  }

  let configuration: SimulatedWorld
  let scheduler: JobScheduler
  let clock = SimulatedClock()
  let timeline: Timeline
  let coverage = CoverageCounter()
  private let state: Mutex<State>
  private let chosenLack: SimulatedWorld.Lack?

  init(_ configuration: SimulatedWorld, seed: UInt64, _ chooser: ScheduleChooser, isRecording: Bool) {
    self.configuration = configuration
    scheduler = JobScheduler(chooser)
    timeline = Timeline(clock, isRecording: isRecording)
    var generators = Chance.allCases.map { SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ $0.rawValue << 56) }
    chosenLack = SimulatedWorld.Lack.allCases.filter(configuration.lacks.contains)
      .randomElement(using: &generators[Int(Chance.machines.rawValue) - 1])
    state = Mutex(State(generators: generators))
  }

  // MARK: Time

  /// The date of the machine at the beginning, as its calendar is set now.
  var startDate: Date {
    Date(timeIntervalSince1970: 1_800_000_000).addingTimeInterval(state.withLock { $0.dateOffset } / .seconds(1))
  }

  /// The date of the world, which is that of the ledger.
  var date: Date { startDate.addingTimeInterval(clock.now / .seconds(1)) }

  /// Whether the calendar was set since the beginning.
  var hasJumped: Bool { state.withLock { $0.hasJumped } }

  /// How far the clock of a process is ahead of the world's, in seconds.
  func clockError(of process: Int) -> Double {
    let difference: Double = configuration.clockDifference / .seconds(1)
    return [-difference, 0, difference][process % 3]
  }

  /// What the machine of a process lacks now.
  func lack(of process: Int) -> SimulatedWorld.Lack? { process == 1 && !areFaultsOver ? chosenLack : nil }

  func jumpDate(by offset: Duration) {
    state.withLock { state in
      state.dateOffset += offset
      state.hasJumped = true
    }
    timeline.note(.world, numbers: offset.components.seconds, text: "the calendar jumps by \(offset)")
  }

  // MARK: Chance

  func random<Result>(_ chance: Chance, _ body: (inout SeededGenerator) -> Result) -> Result {
    state.withLock { body(&$0.generators[Int(chance.rawValue) - 1]) }
  }

  /// Whether something happens whose probability is given. Nothing does after the faults have ended.
  func happens(_ probability: Double, _ chance: Chance) -> Bool {
    guard probability > 0, !areFaultsOver else { return false }
    return random(chance) { Double.random(in: 0..<1, using: &$0) } < probability
  }

  func duration(in range: ClosedRange<Duration>, _ chance: Chance) -> Duration {
    let (low, high) = (range.lowerBound / .milliseconds(1), range.upperBound / .milliseconds(1))
    return .milliseconds(random(chance) { Int64.random(in: Int64(low)...max(Int64(low), Int64(high)), using: &$0) })
  }

  /// The number of failures of the disk and the ledger so far.
  var failures: Int { state.withLock { $0.failures } }

  /// Notes a failure of the disk or the ledger.
  func noteFailure(_ name: String) {
    state.withLock { $0.failures += 1 }
    coverage.count("fault: \(name)")
  }

  /// How often downloads commit checkpoints. A file has a limited number of them because of its bytes, so that the jobs of a
  /// transfer follow its time.
  var checkpoints: CheckpointPolicy {
    let largest = configuration.servers.flatMap(\.files).map(\.size).max() ?? 0
    return CheckpointPolicy(bytes: max(64 << 10, largest / 16), interval: .seconds(1))
  }

  var areFaultsOver: Bool { state.withLock { $0.areFaultsOver } }

  func endFaults() {
    state.withLock { $0.areFaultsOver = true }
    timeline.note(.world, text: "the faults end")
  }

  // MARK: Violations

  var violations: [Violation] { state.withLock { $0.violations } }

  func report(_ invariant: Invariant.Name, _ text: @autoclosure () -> String) {
    let violation = Violation(invariant: invariant, text: text(), time: clock.now, step: scheduler.steps)
    timeline.note(.world, text: "NOT SO: \(invariant.sentence): \(violation.text)")
    state.withLock { $0.violations.append(violation) }
  }
}
