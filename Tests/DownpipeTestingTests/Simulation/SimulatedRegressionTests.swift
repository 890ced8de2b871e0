import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

/// Defects that simulations have found, each with the shortest commands that showed it. Many orders are tried, because the
/// order that a seed chooses changes with the engine.
@Suite(.endsHangs)
struct SimulatedRegressionTests {
  private func simulate(
    _ world: SimulatedWorld, _ scripts: [[SimulatedCommand]], seeds: Range<UInt64> = 0..<300
  ) async throws {
    let simulation = Simulation(world, workload: .scripted(scripts))
    try await simulation.run(seeds: seeds)
  }

  @Test("A command for all downloads comes after an earlier one for one of them")
  func pauseAllAfterResume() async throws {
    try await simulate(
      .calm, [[.add(0, file: 1), .pauseAll], [.resumeAll, .pause(1), .pauseAll], [.pause(2), .resume(0)]])
  }

  @Test("What an earlier request has fetched is not published for a later one with another digest")
  func publishesForItsOwnRequest() async throws {
    var world = SimulatedWorld.calm
    (world.slowLedger, world.slowDisk) = (0.3, 0.2)
    try await simulate(
      world,
      [
        [.add(0, file: 3), .wait(milliseconds: 100), .look, .add(0, file: 2, with: [.digest]), .waitUntilIdle],
        [.wait(milliseconds: 150), .redirect(0, file: 7), .look, .add(0, file: 6, with: [.digest])],
      ])
  }

  @Test("A command that has waited for an earlier run comes before a later one for the next run")
  func pauseAfterCancel() async throws {
    var world = SimulatedWorld.calm
    world.slowLedger = 0.3
    try await simulate(
      world,
      [
        [.add(0, file: 0)], [.wait(milliseconds: 600), .pause(0)],
        [
          .wait(milliseconds: 364), .gate(isOpen: false), .wait(milliseconds: 100), .gate(isOpen: true),
          .wait(milliseconds: 50), .cancel(0),
        ],
      ])
  }

  @Test("The last of several replacements of the limits counts")
  func limitsInOrder() async throws {
    var world = SimulatedWorld.calm
    world.processes = 2
    try await simulate(
      world,
      [
        [.add(0, file: 0), .add(1, file: 1), .limit(concurrent: 3, perHost: 1, excess: .stops)],
        [.limit(concurrent: 3, perHost: 3, excess: .stops), .add(2, file: 2), .add(3, file: 3)],
      ])
  }
}
