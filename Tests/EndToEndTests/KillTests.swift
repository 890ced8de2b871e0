import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// The tool is killed several times, and the same command runs again until everything is finished. Then every file is
  /// the one of the server, no file was fetched or published twice, and no partial is left.
  ///
  /// `.ci/long kill` runs the long form.
  @Suite struct KillTests {
    static let settings = KillTestSettings()

    @Test(arguments: settings.rounds)
    func noFileIsLostAndNoPartialIsLeft(_ round: KillTestRound) async throws {
      var generator = round.generator
      var phases: [KillTestInstance.Phase] = []
      var runs = 0
      var worst: Int64 = 0
      // A scenario may end before all kills are done; the next one has other files and other faults.
      while phases.count < round.kills {
        let instance = try await KillTestInstance(round.kind, seed: generator.next())
        repeat {
          runs += 1
          guard let phase = try await instance.run(kills: phases.count < round.kills) else { break }
          phases.append(phase)
        } while instance.problems.isEmpty
        if instance.problems.isEmpty { try await instance.verify() }
        await instance.server.shutdown()
        worst = max(worst, instance.server.worst)
        guard instance.problems.isEmpty else {
          Issue.record(
            """
            kill test, \(round.testDescription), after \(phases.count) kills (seed \(round.seed))
            again: \(round.replay)
            \(instance.report)
            """)
          return
        }
        try instance.folder.delete()
      }
      let counts = KillTestInstance.Phase.allCases.map { phase in
        "\(phases.count { $0 == phase }) \(phase.rawValue)"
      }
      print(
        "kill test, \(round.testDescription): \(phases.count) kills (\(counts.joined(separator: ", "))) in \(runs) runs,"
          + " at most \(worst) bytes fetched again; seed \(round.seed)")
    }
  }
}
