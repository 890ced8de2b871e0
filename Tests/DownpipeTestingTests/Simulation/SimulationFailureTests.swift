@_spi(Ledger) import DownpipeCore
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeTesting

/// What a failure says, and how it is shortened.
@Suite(.endsHangs)
struct SimulationFailureTests {
  private func failure(of simulation: Simulation, seeds: Range<UInt64>) async throws -> SimulationFailure {
    do {
      try await simulation.run(seeds: seeds)
    } catch let failure as SimulationFailure {
      return failure
    }
    return try #require(nil, "no seed fails")
  }

  /// A sentence that two commands disprove: one that adds a download, and one that pauses it.
  private static var brief: Simulation {
    var simulation = Simulation(.faulty)
    simulation.invariants.append(
      Invariant("no download is paused", .atRest) { view in
        view.records.first { $0.phase == .paused }.map { "\($0.id) is paused" }
      })
    return simulation
  }

  @Test("a failure that needs two commands is shortened to them, without faults")
  func shortens() async throws {
    let failure = try await failure(of: Self.brief, seeds: 0..<100)
    #expect(failure.invariant.sentence == "no download is paused")
    let commands = failure.commands.flatMap { $0.flatMap(\.self) }
    #expect((2...3).contains(commands.count), "\(commands)")
    #expect(commands.contains { $0.name == "add" })
    #expect(commands.contains { $0.name.hasPrefix("pause") })
    #expect(failure.description.contains("faults: none"))
    #expect(failure.description.hasPrefix("Not so: no download is paused.\nWhat happened: d"))
    #expect(failure.description.contains("DOWNPIPE_SIMULATION_SEED=\(failure.seed)"))
  }

  @Test("a failure without shrinking has all commands, and a repetition fails in the same way")
  func repeats() async throws {
    var simulation = Self.brief
    let short = try await failure(of: simulation, seeds: 0..<100)
    simulation.shrinkingAttempts = 0
    let first = try await failure(of: simulation, seeds: short.seed..<short.seed + 1)
    let second = try await failure(of: simulation, seeds: short.seed..<short.seed + 1)
    #expect(first.description == second.description)
    #expect(first.commands == simulation.plan(of: short.seed).scripts)
    #expect(first.commands.joined().joined().count > short.commands.joined().joined().count)
  }

  @Test("a timeline begins with the first command, and its diagram with sequenceDiagram")
  func timeline() async throws {
    let timeline = try await Simulation(.calm, workload: .adding(2)).timeline(of: 1)
    #expect(timeline.entries.contains { $0.kind == .command && $0.text.hasPrefix("user 1: add(") })
    #expect(timeline.entries.contains { $0.kind == .request })
    let engine = timeline.entries.filter { $0.kind == .engine }
    #expect(engine.contains { $0.text == "the work has ended: published" && $0.id != nil })
    #expect(engine.contains { $0.text.hasPrefix("call 1") })
    #expect(timeline.entries.map(\.time) == timeline.entries.map(\.time).sorted())
    let lines = timeline.mermaid.split(separator: "\n")
    #expect(lines.first == "sequenceDiagram")
    #expect(lines.contains("  participant P1 as Process 1"))
    #expect(lines.count > timeline.entries.count)
    #expect(!timeline.mermaid.contains(";"))
    #expect(timeline.description.split(separator: "\n").count == timeline.entries.count)
  }

  @Test("commands of a workload with scripts are given as they are, by the first process")
  func scripts() {
    let scripts: [[SimulatedCommand]] = [[.add(0, file: 0), .pause(0)], [.look]]
    var world = SimulatedWorld.calm
    world.processes = 2
    #expect(SimulatedWorkload.scripted(scripts).scripts(of: world, seed: 1) == [scripts, []])
    #expect(SimulatedWorkload.scripted(scripts).scripts(of: world, seed: 2) == [scripts, []])
  }

  @Test("reports are added")
  func reports() async throws {
    let simulation = Simulation(.calm, workload: .adding(1))
    var sum = try await simulation.run(seeds: 0..<2)
    let other = try await simulation.run(seeds: 2..<5)
    let jobs = sum.jobs + other.jobs
    sum.add(other)
    #expect(sum.seeds == 5)
    #expect(sum.repetitions == 1)
    #expect(sum.jobs == jobs)
    #expect(sum.description.hasPrefix("5 seeds, 1 of them twice\n5 different histories\n\(jobs) jobs\n0 crashes\n"))
  }
}
