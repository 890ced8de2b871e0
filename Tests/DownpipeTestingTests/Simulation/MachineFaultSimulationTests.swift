import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

/// One of the machines lacks its disk, its credentials or its network.
@Suite(.endsHangs)
struct MachineFaultSimulationTests {
  private static let seeds: Range<UInt64> = 0..<60

  @Test("every invariant holds, also with one process that lacks something", arguments: SimulatedWorld.Lack.allCases)
  func lacks(_ lack: SimulatedWorld.Lack) async throws {
    var world = SimulatedWorlds.threeProcesses.world
    world.lacks = [lack]
    let report = try await Simulation(world).run(seeds: Self.seeds)
    #expect(report.counts["a fault of the machine", default: 0] > 0)
  }

  @Test("a retry policy that counts faults of the machine is found")
  func counted() async throws {
    let failure = await #expect(throws: SimulationFailure.self) {
      var simulation = Simulation(SimulatedWorlds.threeProcesses.world) { machine in
        machine.source
        machine.gate
        machine.limits
        Retry(.constant(.seconds(60), attempts: 6), table: .standard.without(.scope(.machine)))
        machine.storage
        machine.ledger
        machine.step
      }
      simulation.shrinkingAttempts = 0
      try await simulation.run(seeds: Self.seeds)
    }
    #expect(failure?.invariant == .machineFaults)
  }
}
