import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

/// Three processes, as on three machines: the clock of one is right, that of another a day ahead, that of the third a day
/// behind.
@Suite(.endsHangs)
struct ClockDifferenceTests {
  private static let seeds: Range<UInt64> = 0..<60

  private static var world: SimulatedWorld {
    var world = SimulatedWorld.faulty
    (world.processes, world.clockDifference) = (3, .seconds(86_400))
    return world
  }

  @Test("every invariant holds with a ledger that has a clock of its own", arguments: [false, true])
  func ledgerClock(isKilled: Bool) async throws {
    var world = Self.world
    if isKilled { world.crashes = .kill }
    try await Simulation(world).run(seeds: Self.seeds)
  }

  @Test("a ledger that keeps due times by the clocks of its machines is found")
  func machineClocks() async throws {
    let failure = await #expect(throws: SimulationFailure.self) {
      var simulation = Simulation(Self.world) { machine in
        machine.source
        machine.gate
        machine.limits
        // Long enough that no small difference of clocks explains an early start.
        Retry(.constant(.seconds(60), attempts: 6))
        machine.storage
        machine.keep("ledger") { MemoryLedger() }
        machine.step
      }
      simulation.shrinkingAttempts = 0
      try await simulation.run(seeds: Self.seeds)
    }
    // It starts early on one machine, or waits for a day on another one.
    let expected: Set<Invariant.Name> = [.dueTimes, .liveness]
    #expect(expected.contains(try #require(failure).invariant))
  }
}
