public import DownpipeCore
import Foundation
import Synchronization

/// Runs whole downloaders in a simulated world, on one thread, in an order that a seed decides.
///
/// ```swift
/// let simulation = Simulation(.faulty) { machine in
///   machine.source
///   machine.gate
///   machine.limits
///   MyPolicy()                 // the stage under test
///   machine.storage
///   machine.ledger
/// }
/// let report = try await simulation.run(seeds: 0..<1_000)
/// print(report)
/// ```
/// Time is virtual: when nothing can run, it jumps to the next moment at which something happens, so that hours cost
/// nothing. Servers, network, disk and ledger fail as the ``SimulatedWorld`` says, processes die between any two steps,
/// and simulated users give commands at the same time. After each of them the ``Invariant``s are checked. Everything
/// follows from the seed: a failure says which seed to repeat, with which it fails again.
///
/// The stages under test must not use threads, queues, clocks or random numbers of their own: see
/// ``SimulatedMachine/outside(_:)`` and ``SimulatedMachine/time``.
///
/// Use it from any task. A simulation occupies a thread of its own; several can run at the same time. A cancelled simulation
/// ends after the present step; a stage that blocks its thread for ever is not interrupted.
public struct Simulation: Sendable {
  /// The surroundings.
  public var world: SimulatedWorld
  /// What the users do.
  public var workload: SimulatedWorkload
  /// How the next job is chosen, by turns: each seed uses one strategy.
  public var strategies: [SchedulingStrategy] = [.randomWalk, .priorities(changes: 3)]
  /// What must hold.
  public var invariants = Invariant.standard
  /// How many times a failure is simulated again to find a shorter one; 0 to report it as it was found.
  public var shrinkingAttempts = 400
  /// Each hundredth seed runs twice, and the histories are compared. This is the number between two of them; 0 for none.
  public var seedsBetweenRepetitions: UInt64 = 100
  /// Changes the options of the downloaders, for tests of the simulation itself.
  package var changeOptions: @Sendable (inout DownloaderOptions) -> Void = { _ in }
  private let stages: @Sendable (SimulatedMachine) throws -> PipelineStages

  /// Creates a simulation.
  ///
  /// - Parameters:
  ///   - world: The surroundings.
  ///   - workload: What the users do.
  ///   - stages: Makes the pipeline of a process, each time that one starts: it must not keep anything from one call to the
  ///     next, except by ``SimulatedMachine/keep(_:_:)``.
  public init(
    _ world: SimulatedWorld = .faulty, workload: SimulatedWorkload = SimulatedWorkload(),
    @PipelineBuilder stages: @escaping @Sendable (SimulatedMachine) throws -> PipelineStages
  ) {
    self.world = world
    self.workload = workload
    self.stages = stages
  }

  /// Creates a simulation of the simulation's own stages, with a step.
  public init(_ world: SimulatedWorld = .faulty, workload: SimulatedWorkload = SimulatedWorkload()) {
    self.init(world, workload: workload) { machine in
      machine.source
      machine.gate
      machine.limits
      machine.segments
      Retry(.exponential(attempts: 6))
      machine.storage
      machine.ledger
      machine.step
      // Most downloaders have none, and the engine tells less then.
      if world.blockingStages > 0, machine.random(in: 0...1) < 0.2 { machine.observer }
    }
  }

  // MARK: Running

  /// Simulates seeds, one after the other.
  ///
  /// The environment variable `DOWNPIPE_SIMULATION_SEED` selects one seed.
  /// - Returns: What was reached.
  /// - Throws: ``SimulationFailure`` for the first seed that fails; `CancellationError`.
  @discardableResult
  public func run(seeds: Range<UInt64>) async throws -> SimulationReport {
    var report = SimulationReport()
    let chosen = ProcessInfo.processInfo.environment["DOWNPIPE_SIMULATION_SEED"].flatMap(UInt64.init)
    for seed in chosen.map({ $0..<$0 + 1 }) ?? seeds {
      try Task.checkCancellation()
      let plan = plan(of: seed)
      let outcome = try await outcome(of: plan)
      report.add(outcome)
      if let violation = outcome.violations.first {
        throw await failure(of: plan, outcome, violation)
      }
      guard seedsBetweenRepetitions > 0, isRepeated(seed) else { continue }
      let again = try await self.outcome(of: plan)
      report.repetitions += 1
      guard again.hash != outcome.hash || again.steps != outcome.steps else { continue }
      throw await difference(of: plan)
    }
    return report
  }

  /// Whether a seed runs twice: by turns seeds of each strategy.
  private func isRepeated(_ seed: UInt64) -> Bool {
    let number = seed / UInt64(max(1, strategies.count))
    return seed % seedsBetweenRepetitions == number % UInt64(max(1, strategies.count)) % seedsBetweenRepetitions
  }

  /// Simulates one seed.
  /// - Throws: ``SimulationFailure``; `CancellationError`.
  @discardableResult
  public func run(seed: UInt64) async throws -> SimulationReport { try await run(seeds: seed..<seed + 1) }

  /// The history of a seed, whether it fails or not.
  /// - Throws: `CancellationError`.
  public func timeline(of seed: UInt64) async throws -> SimulationTimeline {
    SimulationTimeline(entries: try await outcome(of: plan(of: seed), isRecording: true).timeline)
  }

  /// A number that stands for the whole history of a seed: the same in every run and every process.
  /// - Throws: `CancellationError`.
  public func fingerprint(of seed: UInt64) async throws -> UInt64 { try await outcome(of: plan(of: seed)).hash }

  func plan(of seed: UInt64) -> SimulationPlan {
    SimulationPlan(
      seed: seed, world: world, scripts: workload.scripts(of: world, seed: seed),
      strategy: strategies.isEmpty ? .inOrder : strategies[Int(seed % UInt64(strategies.count))],
      changeOptions: changeOptions)
  }

  func outcome(of plan: SimulationPlan, isRecording: Bool = false) async throws -> SimulationOutcome {
    try Task.checkCancellation()
    let run = SimulationRun(plan, invariants, isRecording: isRecording, stages)
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let thread = Thread { continuation.resume(returning: run.perform()) }
        thread.stackSize = 4 << 20
        thread.start()
      }
    } onCancel: {
      run.cancel()
    }
    try Task.checkCancellation()
    return outcome
  }

  // MARK: Failures

  private func failure(
    of plan: SimulationPlan, _ outcome: SimulationOutcome, _ violation: World.Violation
  ) async -> SimulationFailure {
    var found = plan
    (found.choices, found.crashes) = (outcome.choices, outcome.crashes)
    let shortest = await SimulationShrinking(attempts: shrinkingAttempts) { plan in
      let outcome = try? await self.outcome(of: plan)
      return outcome?.violations.first?.invariant == violation.invariant ? outcome : nil
    }.shortest(of: found)
    let recorded = try? await self.outcome(of: shortest, isRecording: true)
    let last = recorded?.violations.first { $0.invariant == violation.invariant } ?? violation
    return SimulationFailure(
      seed: plan.seed, strategy: plan.strategy, invariant: violation.invariant, happened: last.text,
      timeline: SimulationTimeline(entries: recorded?.timeline ?? []), plan: shortest)
  }

  private func difference(of plan: SimulationPlan) async -> SimulationFailure {
    let first = (try? await outcome(of: plan, isRecording: true))?.timeline ?? []
    let second = (try? await outcome(of: plan, isRecording: true))?.timeline ?? []
    let index = zip(first, second).enumerated().first { $1.0 != $1.1 }?.offset ?? min(first.count, second.count)
    func text(_ entries: [TimelineEntry]) -> String { index < entries.count ? "\(entries[index])" : "nothing" }
    return SimulationFailure(
      seed: plan.seed, strategy: plan.strategy, invariant: .determinism,
      happened: "two runs differ: first “\(text(first))”, then “\(text(second))”",
      timeline: SimulationTimeline(entries: Array(first.prefix(index + 1))), plan: plan)
  }
}
