import DownpipeTesting
import Foundation
import Testing

/// What the kill test does, by environment variables:
/// - `DOWNPIPE_KILLS`: how often the tool is killed; by default, so often that each scenario has a round.
/// - `DOWNPIPE_KILL_SEED`: the seed; random by default. It is printed, and repeats scenarios, files, faults and the
///   moments of the kills. What the tool is doing at that moment differs a little each time.
/// - `DOWNPIPE_KILL_ROUND`: the only round to run.
struct KillTestSettings {
  /// The number of kills of a round.
  static let killsInARound = 4

  let kills: Int
  let seed: UInt64
  let onlyRound: Int?

  init(_ environment: [String: String] = ProcessInfo.processInfo.environment) {
    kills =
      environment["DOWNPIPE_KILLS"].flatMap { Int($0) }
      ?? KillTestScenario.Kind.allCases.count * Self.killsInARound
    seed = environment["DOWNPIPE_KILL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64(UInt32.max))
    onlyRound = environment["DOWNPIPE_KILL_ROUND"].flatMap { Int($0) }
  }

  /// The rounds; each takes the next scenario.
  var rounds: [KillTestRound] {
    let kinds = KillTestScenario.Kind.allCases
    return stride(from: 0, to: kills, by: Self.killsInARound).enumerated().compactMap { index, done in
      if let onlyRound, onlyRound != index { return nil }
      return KillTestRound(
        number: index, kind: kinds[index % kinds.count], kills: min(Self.killsInARound, kills - done), seed: seed)
    }
  }
}

/// A few kills in one scenario. The scenario starts again when it ends before all kills are done.
struct KillTestRound: Sendable, CustomTestStringConvertible {
  /// Counted from 0.
  let number: Int
  let kind: KillTestScenario.Kind
  let kills: Int
  /// The seed of all rounds.
  let seed: UInt64

  var testDescription: String { "round \(number): \(kind.rawValue)" }

  /// The command that repeats this round.
  var replay: String {
    "DOWNPIPE_KILL_SEED=\(seed) DOWNPIPE_KILL_ROUND=\(number) DOWNPIPE_KILLS=\(number * 4 + kills) .ci/long kill"
  }

  var generator: SeededGenerator {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<number { _ = generator.next() }
    return SeededGenerator(seed: generator.next())
  }
}
