import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A seed has one history.
@Suite(.endsHangs)
struct SimulationReproducibilityTests {
  private static let seeds: Range<UInt64> = 0..<2

  private static func fingerprints() async throws -> [String] {
    var lines: [String] = []
    for world in SimulatedWorlds.allCases {
      let simulation = Simulation(world.world)
      for seed in seeds {
        lines.append("fingerprint of \(world.rawValue) \(seed): \(try await simulation.fingerprint(of: seed))")
      }
    }
    return lines
  }

  @Test("the same seed has the same history in one process, and another seed has another")
  func oneProcess() async throws {
    let first = try await Self.fingerprints()
    #expect(try await Self.fingerprints() == first)
    // Two worlds may have the same history, for example if no process dies in either.
    let numbers = first.compactMap { $0.split(separator: ":").last }
    for world in 0..<SimulatedWorlds.allCases.count {
      let own = numbers[world * Self.seeds.count..<(world + 1) * Self.seeds.count]
      #expect(Set(own).count == own.count)
    }
  }

  // A process has its own seed of hash values, which decides the order of sets and dictionaries, and its own addresses.
  @Test("the same seed has the same history in another process")
  func anotherProcess() async throws {
    let ending = try #require(
      await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        print(try await Self.fingerprints().joined(separator: "\n"))
      })
    let output = String(decoding: ending.standardOutputContent, as: UTF8.self)
    let lines = output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("fingerprint of ") }
    #expect(try await Self.fingerprints() == lines)
  }

  @Test("the jobs of a transfer follow its time: a hundred times the bytes in the same time cost as many")
  func costOfTransfers() async throws {
    func report(_ size: Int64, _ bandwidth: Int64) async throws -> SimulationReport {
      var server = SimulatedServer(host: "one.example", files: [SimulatedFile(path: "/film", size: size)])
      server.bandwidth = bandwidth
      server.latency = .milliseconds(10) ... .milliseconds(10)
      var simulation = Simulation(SimulatedWorld(servers: [server]), workload: .adding(1))
      simulation.strategies = [.inOrder]
      return try await simulation.run(seed: 1)
    }
    var begin = ContinuousClock.now
    let slow = try await report(1 << 20, 10 << 10)
    let slowTime = begin.duration(to: .now)
    begin = .now
    let fast = try await report(100 << 20, 1 << 20)
    #expect(Double(fast.jobs) / Double(slow.jobs) <= 1.05, "\(fast.jobs) and \(slow.jobs) jobs")
    #expect(abs(fast.time / slow.time - 1) < 0.05, "\(fast.time) and \(slow.time)")
    // Told only: the machine may be busy with something else.
    print("simulation: 1 MiB at 10 KiB/s takes \(slowTime), 100 MiB at 1 MiB/s \(begin.duration(to: .now))")
  }
}
