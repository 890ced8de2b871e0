@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// Everything that determines one simulation.
struct SimulationPlan: Sendable {
  var seed: UInt64
  var world: SimulatedWorld
  var scripts: [UserScripts]
  var strategy: SchedulingStrategy
  var changeOptions: @Sendable (inout DownloaderOptions) -> Void = { _ in }
  /// The choices of the scheduler to repeat; `nil` to choose by the strategy.
  var choices: [UInt16]?
  /// The steps before which processes die; `nil` to choose them by the seed.
  var crashes: [Int]?
}

/// What a simulation has shown.
struct SimulationOutcome: Sendable {
  var violations: [World.Violation]
  var hash: UInt64
  var steps: Int
  var time: Duration
  var choices: [UInt16]
  var crashes: [Int]
  var coverage: [String: Int]
  var timeline: [TimelineEntry]
}

/// One simulation: a world, its processes and users, and the loop that runs their jobs.
final class SimulationRun: Sendable {
  typealias Stages = @Sendable (SimulatedMachine) throws -> PipelineStages

  private struct State: Sendable {
    /// The next command of each user, by process and user.
    var cursors: [[Int]]
    /// The users that have not given all their commands.
    var busyUsers: Int
    var isOver = false
    /// Whether all commands have ended, so that no process dies any more.
    var isEnding = false
    var endedAt: Duration?
    var restWaiters: [CheckedContinuation<Void, Never>] = []
    var crashes: [Int] = []
  }

  private let plan: SimulationPlan
  private let stages: Stages
  private let invariants: [Invariant]
  private let world: World
  private let system: SimulatedSystem
  private let executor: SimulatedExecutor
  private let order = CommandOrder()
  private let state: Mutex<State>
  /// The most steps of a simulation; more are a loop.
  private static let mostSteps = 200_000

  init(_ plan: SimulationPlan, _ invariants: [Invariant], isRecording: Bool, _ stages: @escaping Stages) {
    self.plan = plan
    self.stages = stages
    self.invariants = invariants
    let chooser =
      plan.choices.map { ScheduleChooser(replaying: $0) } ?? ScheduleChooser(plan.strategy, seed: plan.seed)
    world = World(plan.world, seed: plan.seed, chooser, isRecording: isRecording)
    system = SimulatedSystem(world, invariants)
    executor = SimulatedExecutor(world.scheduler)
    state = Mutex(
      State(
        cursors: plan.scripts.map { $0.map { _ in 0 } },
        busyUsers: plan.scripts.reduce(0) { $0 + $1.count { !$0.isEmpty } }))
  }

  /// Ends the simulation after the present job.
  func cancel() { world.scheduler.cancel() }

  // MARK: The loop

  /// Runs the simulation to its end, on this thread.
  func perform() -> SimulationOutcome {
    let director = Task(executorPreference: executor, priority: .medium) {
      await self.direct()
      self.state.withLock { $0.isOver = true }
    }
    var nextCrash = nextCrash(after: 0)
    let checksSteps = invariants.contains { $0.moment == .everyStep && $0.check != nil }
    while !state.withLock({ $0.isOver }), world.violations.isEmpty, !world.scheduler.isCancelled {
      if let step = nextCrash, world.scheduler.steps >= step, let crash = plan.world.crashes {
        if !state.withLock({ $0.isEnding }), !system.processes.isEmpty {
          state.withLock { $0.crashes.append(world.scheduler.steps) }
          system.crash(crash)
        }
        nextCrash = self.nextCrash(after: world.scheduler.steps)
        continue
      }
      if world.scheduler.runOne() {
        if checksSteps { system.checks.check(at: .everyStep) }
        if world.scheduler.strays > 0 {
          system.checks.report(
            .determinism,
            "a stage uses a thread, a queue or a task of its own: make its calls by SimulatedMachine.outside")
        }
        if world.scheduler.steps > Self.mostSteps { system.checks.report(.liveness, "there are jobs without end") }
      } else if !rest() {
        break
      }
    }
    director.cancel()
    clearUp()
    return SimulationOutcome(
      violations: world.violations, hash: world.timeline.hash ^ world.scheduler.hash, steps: world.scheduler.steps,
      time: world.clock.now,
      choices: world.scheduler.choices, crashes: state.withLock { $0.crashes }, coverage: world.coverage.counts,
      timeline: world.timeline.entries)
  }

  /// What happens when no job can run: checks, and then time passes.
  /// - Returns: `false` if nothing can happen any more.
  private func rest() -> Bool {
    system.checks.rest(system.processes)
    let waiters = state.withLock { state in
      defer { state.restWaiters = [] }
      return state.restWaiters
    }
    if !waiters.isEmpty {
      for waiter in waiters { waiter.resume() }
      return true
    }
    guard let due = world.clock.nextDue else {
      system.checks.report(.liveness, "nothing can happen any more; \(situation)")
      return false
    }
    let end = state.withLock { $0.endedAt }
    if due - (end ?? .zero) > plan.world.patience {
      system.checks.report(
        .liveness,
        end == nil
          ? "the commands have not ended after \(plan.world.patience); \(situation)"
          : "\(plan.world.patience) after the end of all faults, not everything has finished; \(situation)")
      return false
    }
    world.timeline.mix(UInt64(world.scheduler.steps))
    world.clock.advance()
    return true
  }

  /// What waits, for a report.
  private var situation: String {
    let waiting = system.checks.records.filter { !$0.phase.isFinal }.map { "\($0.id) is \($0.phase)" }
    let sleeps = world.clock.sleepers.prefix(5).map { "\($0.purpose) until \($0.due)" }
    return (waiting + sleeps).joined(separator: ", ")
  }

  private func nextCrash(after step: Int) -> Int? {
    guard plan.world.crashes != nil else { return nil }
    let done = state.withLock { $0.crashes.count }
    if let planned = plan.crashes { return planned.first { $0 > step } }
    guard done < plan.world.mostCrashes else { return nil }
    // The time between two deaths is distributed exponentially. Numbers of their own: repeated deaths draw none.
    let draw = world.random(.crashTimes) { Double.random(in: Double.leastNonzeroMagnitude..<1, using: &$0) }
    return step + 1 + Int(-log(draw) * Double(plan.world.jobsBetweenCrashes))
  }

  /// Ends what is left, so that nothing of the simulation outlives it.
  private func clearUp() {
    for process in system.processes {
      process.die()
      process.bury()
    }
    world.clock.kill(executor)
    let waiters = state.withLock { state in
      defer { state.restWaiters = [] }
      return state.restWaiters
    }
    for waiter in waiters { waiter.resume() }
    _ = world.scheduler.drain(executor)
  }

  // MARK: The director

  /// Starts the processes, again after each death, until all users have given their commands; then checks how it ends.
  private func direct() async {
    await withTaskGroup(of: Void.self) { group in
      for number in 1...plan.world.processes { group.addTask { await self.live(number) } }
    }
    guard !Task.isCancelled else { return }
    await rested()
    if plan.world.processes == 1 {
      order.check(system.checks.records) { system.checks.report($0, $1) }
    }
    state.withLock { $0.endedAt = world.clock.now }
    world.endFaults()
    await SimulationEnd(system: system, world: world).perform(rested: rested)
  }

  /// Waits until no job can run.
  private func rested() async {
    await withCheckedContinuation { continuation in state.withLock { $0.restWaiters.append(continuation) } }
  }

  /// Starts a process again and again, until all users of all processes have given their commands.
  private func live(_ number: Int) async {
    while !Task.isCancelled {
      let process = system.start(number)
      Task(executorPreference: process.executor, priority: .medium) { await self.work(in: process) }
      await process.ended()
      if process.isAlive { return }
      let pause = world.duration(in: .zero ... .seconds(5), .pauses)
      try? await world.clock.sleep(until: world.clock.now + pause, purpose: SimulatedUser.sleep, owner: executor)
    }
  }

  /// The life of one process: a downloader, and its users.
  private func work(in process: SimulatedProcess) async {
    await open(in: process)
    await withTaskGroup(of: Void.self) { group in
      for user in plan.scripts[process.number - 1].indices {
        group.addTask { await self.work(as: user, in: process) }
      }
    }
    // Its commands may have been given by an earlier life.
    endIfDone()
  }

  private func work(as number: Int, in process: SimulatedProcess) async {
    let user = SimulatedUser(number: number + 1, process: process, order: order) {
      try await process.open(try self.stages(SimulatedMachine(process: process)), self.plan.changeOptions)
    }
    let script = plan.scripts[process.number - 1][number]
    while process.isAlive {
      let command = state.withLock { state -> SimulatedCommand? in
        let next = state.cursors[process.number - 1][number]
        guard next < script.count else { return nil }
        state.cursors[process.number - 1][number] = next + 1
        return script[next]
      }
      guard let command else { break }
      await user.perform(command)
      noteProgress(of: number, in: process, script.count)
    }
  }

  private func noteProgress(of user: Int, in process: SimulatedProcess, _ count: Int) {
    state.withLock { state in
      if state.cursors[process.number - 1][user] == count { state.busyUsers -= 1 }
    }
    endIfDone()
  }

  private func endIfDone() {
    let isEnding = state.withLock { state in
      state.isEnding = state.isEnding || state.busyUsers <= 0
      return state.isEnding
    }
    guard isEnding else { return }
    for process in system.processes where process.downloader != nil { process.finish() }
  }

  /// Opens the downloader of a process; tries again if the ledger or the disk fails.
  private func open(in process: SimulatedProcess) async {
    while process.isAlive {
      do {
        _ = try await process.open(try stages(SimulatedMachine(process: process)), plan.changeOptions)
        return
      } catch {
        guard process.isAlive else { return }
        let code = (error as? DownloadError)?.code
        if plan.world.ledgerFailures == 0 || code != .ledger {
          system.checks.report(.response, "the downloader could not be opened: \(error)")
          return
        }
        try? await process.time.sleep(for: .seconds(1), purpose: SimulatedUser.sleep)
      }
    }
  }
}
