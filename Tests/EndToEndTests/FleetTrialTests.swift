#if os(Linux) && Postgres
  import Foundation
  import Testing

  /// The long trial of a fleet; `.ci/long fleet` runs it. See ``FleetTrialSettings`` for its size.
  @Suite(
    .timeLimit(.minutes(600)),
    .enabled(if: FleetTrialSettings.asked != nil, "it takes many minutes: .ci/long fleet runs it"))
  struct FleetTrialTests {
    @Test("Each file is finished once, within the limits of all workers, through all faults")
    func eachFileOnce() async throws {
      let settings = try #require(FleetTrialSettings.asked)
      let trial = try await FleetTrial(settings)
      let report = try await trial.run()
      print(report.text)
      guard report.problems.isEmpty else {
        let shown = report.problems.prefix(50).joined(separator: "\n")
        Issue.record("\(report.problems.count) problems; again: \(settings.replay)\nin \(trial.folder):\n\(shown)")
        return
      }
      try FileManager.default.removeItem(atPath: trial.folder)
    }
  }
#endif
