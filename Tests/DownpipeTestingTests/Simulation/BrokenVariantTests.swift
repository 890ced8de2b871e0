import DownpipeCore
@testable import DownpipeTesting
import HangLimit
import Testing

/// A downloader with a defect that simulations must find.
struct BrokenVariant: Sendable, CustomTestStringConvertible {
  /// Where the defect is.
  enum Defect: Sendable {
    case ledger(BrokenLedger.Defect)
    case storage(BrokenStorage.Defect)
    case source(BrokenSource.Defect)
    case step(BrokenStep.Defect)
    #if SABOTAGE
      case engine(Sabotage)
    #endif
    case limits, gate, retry
  }

  let defect: Defect
  /// The surroundings in which the defect shows.
  let world: SimulatedWorld
  /// What the users do.
  let workload: SimulatedWorkload
  /// The invariants that do not hold.
  let invariants: Set<Invariant.Name>
  /// Invariants that are not checked, because they would find the defect before it does harm.
  let unchecked: Set<Invariant.Name>
  /// The number of seeds within which it is found, about three times the number that it took.
  let seeds: UInt64

  init(
    _ defect: Defect, in world: SimulatedWorld = .faulty, _ invariants: Set<Invariant.Name>,
    unchecked: Set<Invariant.Name> = [], workload: SimulatedWorkload = SimulatedWorkload(), within seeds: UInt64
  ) {
    self.defect = defect
    self.world = world
    self.workload = workload
    self.invariants = invariants
    self.unchecked = unchecked
    self.seeds = seeds
  }

  var testDescription: String { "\(defect)" }

  /// Returns a simulation of the broken stages, or of the same ones without the defect.
  func simulation(isBroken: Bool = true) -> Simulation {
    var (ledger, storage): (BrokenLedger.Defect?, BrokenStorage.Defect?)
    var (source, step): (BrokenSource.Defect?, BrokenStep.Defect?)
    var (hasLimits, hasGate, hasRetry) = (false, false, false)
    #if SABOTAGE
      var sabotage: Sabotage?
    #endif
    if isBroken {
      switch defect {
      case .ledger(let defect): ledger = defect
      case .storage(let defect): storage = defect
      case .source(let defect): source = defect
      case .step(let defect): step = defect
      #if SABOTAGE
        case .engine(let defect): sabotage = defect
      #endif
      case .limits: hasLimits = true
      case .gate: hasGate = true
      case .retry: hasRetry = true
      }
    }
    var simulation = Simulation(world, workload: workload) {
      [ledger, storage, source, step, hasLimits, hasGate, hasRetry] machine in
      let (process, disk) = (machine.process, machine.process.system.disk)
      BrokenSource(
        base: SimulatedSource(network: process.system.network, process: process), defect: source,
        executor: process.executor)
      BrokenGate(base: machine.gate, isBroken: hasGate)
      BrokenLimits(base: machine.limits, excess: hasLimits ? 4 : 0)
      machine.segments
      BrokenRetry(isBroken: hasRetry)
      BrokenStorage(base: machine.storage, defect: storage, disk: disk)
      BrokenLedger(base: machine.ledger, defect: ledger)
      machine.step
      BrokenStep(defect: step, time: machine.time, disk: disk)
    }
    simulation.invariants.removeAll { unchecked.contains($0.name) }
    simulation.shrinkingAttempts = 0
    simulation.seedsBetweenRepetitions = invariants.contains(.determinism) ? 1 : 0
    #if SABOTAGE
      simulation.changeOptions = { [sabotage] in $0.sabotage = sabotage }
    #endif
    return simulation
  }

  /// Returns the first failure by one of the invariants.
  func firstFailure(_ strategy: SchedulingStrategy, within seeds: UInt64) async throws -> SimulationFailure? {
    var simulation = simulation()
    simulation.strategies = [strategy]
    for seed in 0..<seeds {
      do {
        try await simulation.run(seed: seed)
      } catch let failure as SimulationFailure where invariants.contains(failure.invariant) {
        return failure
      } catch is SimulationFailure {
        // Another invariant came first.
      }
    }
    return nil
  }
}

extension BrokenVariant {
  private static var killing: SimulatedWorld {
    var world = SimulatedWorld.faulty
    (world.crashes, world.jobsBetweenCrashes) = (.kill, 500)
    return world
  }

  /// Steps often return what is not there.
  private static var careless: SimulatedWorld {
    var world = SimulatedWorld.calm
    world.stepFailures = 0.2
    return world
  }

  private static var losingPower: SimulatedWorld {
    var world = SimulatedWorld.faulty
    (world.crashes, world.durability, world.jobsBetweenCrashes) = (.powerLoss, .power, 500)
    return world
  }

  private static var shared: SimulatedWorld {
    var world = SimulatedWorld.faulty
    world.processes = 2
    return world
  }

  /// Many commands for few downloads.
  private static var crowded: SimulatedWorkload {
    var workload = SimulatedWorkload()
    (workload.downloads, workload.users, workload.commands) = (2, 4, 16)
    return workload
  }

  /// Large files, and no commands while they arrive: the power fails in the middle of a transfer.
  private static let patient: SimulatedWorkload = {
    let additions: [SimulatedCommand] = [.add(0, file: 0), .add(1, file: 6)]
    return .scripted([additions + [SimulatedCommand](repeating: .wait(milliseconds: 1_000), count: 10)])
  }()

  private static var slow: SimulatedWorld {
    var world = SimulatedWorld.calm
    world.slowLedger = 0.5
    return world
  }

  static let ofStages: [BrokenVariant] = [
    BrokenVariant(.ledger(.claimsMore), [.claims], within: 3),
    BrokenVariant(.ledger(.forgetsOutcomes), [.liveness, .idle, .lastState], within: 6),
    BrokenVariant(.ledger(.forgetsPauses), [.commandOrder, .commandResult], within: 27),
    BrokenVariant(.ledger(.forgetsPausesTogether), [.commandOrder, .commandResult], within: 150),
    BrokenVariant(.ledger(.pausesOthers), [.commandOrder, .commandResult], within: 87),
    BrokenVariant(.ledger(.leasesPaused), [.lifecycle, .commandOrder], within: 12),
    BrokenVariant(.ledger(.leasesHeld), in: shared, [.lifecycle, .oneWriter], within: 3),
    BrokenVariant(.ledger(.ignoresLimits), [.limits], within: 3),
    BrokenVariant(.ledger(.neverReclaims), in: killing, [.liveness], within: 27),
    BrokenVariant(.ledger(.forgetsRemovals), [.commandOrder, .commandResult], within: 42),
    BrokenVariant(.ledger(.restartsFinished), [.liveness, .lastState, .refetching], within: 3),
    BrokenVariant(.ledger(.saysIdle), [.idle], within: 66),
    BrokenVariant(.ledger(.forgetsURLs), [.commandOrder], within: 150),
    BrokenVariant(.ledger(.forgetsCheckpoints), in: killing, [.refetching], within: 400),
    BrokenVariant(.storage(.forgetsFlushes), in: losingPower, [.claims], within: 3),
    BrokenVariant(
      .storage(.forgetsFlushesUnnoticed), in: losingPower, [.wholeVersions], unchecked: [.claims],
      workload: patient, within: 90),
    BrokenVariant(.storage(.losesWrites), [.claims, .wholeVersions, .liveness, .refetching], within: 3),
    BrokenVariant(.storage(.shiftsContinued), [.wholeVersions, .claims], within: 27),
    BrokenVariant(.storage(.publishesEarly), [.wholeVersions], within: 3),
    BrokenVariant(.storage(.forgetsFiles), [.wholeVersions], within: 3),
    BrokenVariant(.storage(.keepsPartials), [.bookkeeping], within: 3),
    BrokenVariant(.storage(.keepsOpen), [.shutdown, .liveness, .bookkeeping], within: 3),
    BrokenVariant(.storage(.losesPartials), [.refetching], within: 78),
    BrokenVariant(.source(.shiftsContinued), [.wholeVersions], within: 33),
    BrokenVariant(.source(.endsEarly), [.wholeVersions], within: 3),
    BrokenVariant(.source(.ignoresCancellation), [.gates, .shutdown], within: 54),
    BrokenVariant(.source(.usesThreads), [.determinism, .liveness], within: 3),
    BrokenVariant(.limits, [.limits], within: 3),
    BrokenVariant(.gate, [.gates], within: 54),
    BrokenVariant(.retry, [.liveness], within: 114),
    BrokenVariant(.step(.alters), [.wholeVersions], within: 3),
    BrokenVariant(.step(.neverEnds), [.liveness], within: 3),
    BrokenVariant(.step(.returnsNothing), [.liveness], within: 3),
    BrokenVariant(.step(.isRandom), in: .calm, [.determinism], within: 3),
  ]

  #if SABOTAGE
    static let ofTheEngine: [BrokenVariant] = [
      BrokenVariant(.engine(.restartsAlways), [.refetching], within: 30),
      BrokenVariant(.engine(.tellsNothing), [.lastState], within: 400),
      BrokenVariant(.engine(.idleWithoutSecondLook), [.idle, .liveness], within: 132),
      BrokenVariant(.engine(.lostMessage), in: .calm, [.liveness, .shutdown], within: 60),
      BrokenVariant(
        .engine(.lateCommands), in: slow, [.commandOrder, .commandResult, .lastState], workload: crowded, within: 300),
      BrokenVariant(.engine(.startsTwice), [.oneWriter], within: 3),
      BrokenVariant(.engine(.keepsCommands), [.bookkeeping], within: 60),
      BrokenVariant(.engine(.runsPastGates), [.gates], within: 54),
      BrokenVariant(.engine(.trustsSteps), in: careless, [.stepInputs, .wholeVersions], within: 30),
    ]
  #else
    /// Only builds by .ci/build have them.
    static let ofTheEngine: [BrokenVariant] = []
  #endif
}

@Suite(.endsHangs) struct BrokenVariantTests {
  static let strategies: [SchedulingStrategy] = [.randomWalk, .priorities(changes: 3)]
  /// Those variants that are found soon, each with one strategy; in the long form all with both.
  static let cases = (BrokenVariant.ofStages + BrokenVariant.ofTheEngine).enumerated().flatMap { index, variant in
    guard !LongForm.isSelected else { return strategies.map { (variant, $0) } }
    return variant.seeds <= 60 ? [(variant, strategies[index % strategies.count])] : []
  }

  @Test(arguments: cases)
  func `a defect is found, and the same seed passes without it`(
    _ variant: BrokenVariant, _ strategy: SchedulingStrategy
  ) async throws {
    let failure = try #require(try await variant.firstFailure(strategy, within: variant.seeds))
    print("simulation: “\(variant.defect)” is found by \(strategy) after \(failure.seed + 1) seeds")
    var sound = variant.simulation(isBroken: false)
    sound.strategies = [strategy]
    try await sound.run(seed: failure.seed)
  }

  #if !SABOTAGE
    @Test("the engine's own defects are found", .disabled("built without DOWNPIPE_SABOTAGE, which .ci/build sets"))
    func ofTheEngine() {}
  #endif
}
