@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The example of the article "Simulating your own stages".
@Suite(.endsHangs)
struct StarvationExampleTests {
  private struct NewestFirst: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().descending(context.arrival) }
  }

  private struct OldestFirst: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
  }

  private static let fair = Invariant("no download waits for more than 20 seconds behind later ones", .atRest) { view in
    view.records.first { old in
      old.phase == .waiting
        && view.records.contains { $0.phase == .transferring && $0.createdAt.timeIntervalSince(old.createdAt) > 20 }
    }.map { "\($0.id) still waits after \(view.time)" }
  }

  /// One server, which needs four seconds for a film, two of which are transferred at once; and a user who adds four films
  /// and then another one each two seconds.
  private func simulation(_ policy: some SchedulingPolicy) -> Simulation {
    var server = SimulatedServer(host: "films.example", files: [SimulatedFile(path: "/film", size: 1 << 20)])
    server.bandwidth = 256 << 10
    let burst = (0..<4).map { SimulatedCommand.add($0, file: 0) }
    let later = (4..<24).flatMap { [.wait(milliseconds: 2_000), SimulatedCommand.add($0, file: 0)] }
    var simulation = Simulation(SimulatedWorld(servers: [server]), workload: .scripted([burst + later])) { machine in
      machine.source
      machine.limits
      policy
      machine.storage
      machine.ledger
    }
    simulation.invariants.append(Self.fair)
    // Each attempt takes a while, and the test does not need the shortest one.
    simulation.shrinkingAttempts = 100
    return simulation
  }

  @Test("newest first: the oldest download never starts, and the print says so")
  func starvation() async throws {
    let failure = try #require(
      await #expect(throws: SimulationFailure.self) { try await simulation(NewestFirst()).run(seeds: 0..<4) })
    #expect(failure.invariant == Self.fair.name)
    #expect(failure.description.hasPrefix("Not so: no download waits for more than 20 seconds behind later ones.\n"))
    let commands = failure.commands.flatMap { $0.flatMap(\.self) }
    #expect(commands.count < 44, "\(failure)")
    // The download waits for more than 20 seconds of virtual time.
    #expect(try #require(failure.timeline.entries.last).time > .seconds(20))
  }

  @Test("oldest first: none waits too long, with the same seeds")
  func fairness() async throws {
    let report = try await simulation(OldestFirst()).run(seeds: 0..<4)
    #expect(report.seeds == 4)
    #expect(report.time > .seconds(4 * 40))
  }
}
