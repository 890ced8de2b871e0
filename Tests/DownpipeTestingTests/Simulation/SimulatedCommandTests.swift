import DownpipeCore
import HangLimit
import Testing

@testable import DownpipeTesting

/// What single commands of simulated users do.
@Suite(.endsHangs)
struct SimulatedCommandTests {
  private func report(_ commands: [SimulatedCommand]) async throws -> SimulationReport {
    var simulation = Simulation(.calm, workload: .scripted([commands]))
    simulation.strategies = [.inOrder]
    return try await simulation.run(seed: 1)
  }

  @Test("a setting of the rate holds for what runs")
  func settings() async throws {
    let free = try await report([.add(0, file: 0), .waitUntilIdle])
    let paced = try await report([.set(bytesPerSecond: 50_000, connections: 3), .add(0, file: 0), .waitUntilIdle])
    // 700,000 bytes, at 1 MiB/s and at 50,000 bytes/s.
    #expect(paced.time - free.time > .seconds(12))
    let back = try await report([
      .set(bytesPerSecond: 50_000, connections: 3), .add(0, file: 0), .set(bytesPerSecond: nil, connections: 3),
      .waitUntilIdle,
    ])
    #expect(back.time < paced.time - .seconds(11))
  }

  @Test("a setting of the connections holds for the next download")
  func connections() async throws {
    let report = try await report([
      .set(bytesPerSecond: nil, connections: 1), .add(0, file: 0, with: .segments), .waitUntilIdle,
    ])
    #expect(report.counts["transfer: several connections"] == nil)
  }

  @Test("a rate that is removed holds no more")
  func removedRate() async throws {
    let paced = try await report([.replaceStage(.rate), .add(0, file: 0), .waitUntilIdle])
    let free = try await report([
      .replaceStage(.rate), .removeStage(.rate, milliseconds: 0), .add(0, file: 0), .waitUntilIdle,
    ])
    #expect(free.time < paced.time)
  }

  @Test("a gate that is removed holds nothing back, and does so when it is back")
  func removedGate() async throws {
    let closed: [SimulatedCommand] = [.gate(isOpen: false), .add(0, file: 3)]
    let transfers = try await report(closed + [.removeStage(.gate, milliseconds: 500), .awaitFile(0)])
    #expect(transfers.counts["stop: gate"] == nil)
    #expect(transfers.time < .seconds(50))
    // The wait of a minute passes.
    #expect(try await report(closed + [.awaitFile(0)]).time > .seconds(60))
    let stopped = try await report([
      .gate(isOpen: false), .add(0, file: 0), .removeStage(.gate, milliseconds: 500), .awaitFile(0),
    ])
    #expect(stopped.counts["stop: gate"] == 1)
  }

  @Test("the bytes of a download go to another one")
  func handingOver() async throws {
    let report = try await report([
      .add(0, file: 0), .wait(milliseconds: 500), .pause(0), .handOver(0, to: 1), .waitUntilIdle,
    ])
    #expect(report.counts["partial: exported"] == 1)
    #expect(report.counts["partial: imported"] == 1)
  }

  @Test("several downloads are added and changed together")
  func together() async throws {
    let report = try await report([
      .addTogether([0, 1, 2], file: 0), .bulk(.pause, of: .tag(isOdd: true)), .bulk(.cancel, of: .numbers([0])),
      .bulk(.resume, of: .phase(.paused)), .bulk(.remove, of: .host(0)), .look,
    ])
    #expect(report.counts["phase: waiting → paused", default: 0] + report.counts["stop: pauseAll", default: 0] == 1)
  }

  @Test("two downloads of one URL run at the same time")
  func duplicates() async throws {
    let report = try await report([.add(0, file: 0), .add(1, file: 0), .waitUntilIdle])
    #expect(report.counts["transfer: one URL twice"] == 1)
  }

  @Test("what each command says of itself is its source")
  func descriptions() {
    let commands: [(SimulatedCommand, String)] = [
      (.add(1, file: 2, after: 0, with: [.digest, .mirrors]), "add(1, file: 2, after: 0, with: [.digest, .mirrors])"),
      (.bulk(.resumeTogether, of: .tag(isOdd: true)), "bulk(.resumeTogether, of: .tag(isOdd: true))"),
      (.bulk(.pause, of: .numbers([1, 2])), "bulk(.pause, of: .numbers([1, 2]))"),
      (.set(bytesPerSecond: nil, connections: 2), "set(bytesPerSecond: nil, connections: 2)"),
      (.removeStage(.gate, milliseconds: 5), "removeStage(.gate, milliseconds: 5)"),
      (.handOver(1, to: 9), "handOver(1, to: 9)"), (.change(1, .mirrors), "change(1, .mirrors)"),
    ]
    for (command, text) in commands { #expect(command.description == text) }
  }
}
