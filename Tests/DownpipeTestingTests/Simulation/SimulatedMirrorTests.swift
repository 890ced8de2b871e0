import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

/// Copies of files on other servers, and downloads with several connections.
@Suite(.endsHangs)
struct SimulatedMirrorTests {
  private func report(
    with options: SimulatedCommand.RequestOptions, in world: SimulatedWorld = .calm
  ) async throws -> SimulationReport {
    // `a0`, which is in segments, because its server sends a strong validator. Faults end with the commands.
    let simulation = Simulation(world, workload: .scripted([[.add(0, file: 0, with: options), .waitUntilIdle]]))
    return try await simulation.run(seeds: 0..<20)
  }

  @Test("a file comes over one connection unless its request asks for more")
  func oneConnection() async throws {
    let report = try await report(with: [])
    #expect(report.counts["transfer: several connections"] == nil)
  }

  @Test("a file in segments comes over several connections to its own server")
  func segments() async throws {
    let report = try await report(with: .segments)
    #expect(report.counts["transfer: several connections", default: 0] >= 20)
    #expect(report.counts["transfer: several servers"] == nil)
  }

  @Test("a file with mirrors comes from several servers")
  func mirrors() async throws {
    let report = try await report(with: [.segments, .mirrors])
    #expect(report.counts["transfer: several servers", default: 0] >= 20)
  }

  @Test(
    "a mirror with another file does not damage the file, with and without a digest",
    arguments: [SimulatedCommand.RequestOptions(), .digest])
  func wrongCopies(_ options: SimulatedCommand.RequestOptions) async throws {
    var world = SimulatedWorld.calm
    for index in world.servers.indices { world.servers[index].faults[.wrongCopy] = 0.5 }
    let report = try await report(with: [.segments, .mirrors, options], in: world)
    #expect(report.counts["fault: wrongCopy", default: 0] > 0)
    #expect(report.counts["transfer: several servers", default: 0] > 0)
  }

  @Test("only copies have the fault of copies")
  func originals() async throws {
    var world = SimulatedWorld.calm
    for index in world.servers.indices { world.servers[index].faults[.wrongCopy] = 1 }
    #expect(try await report(with: .segments, in: world).counts["fault: wrongCopy"] == nil)
  }
}
