/// A simulation in which an invariant does not hold.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  /// The seed with which it fails.
  public let seed: UInt64
  /// The strategy of the seed.
  public let strategy: SchedulingStrategy
  /// The invariant that does not hold.
  public let invariant: Invariant.Name
  /// What happened instead.
  public let happened: String
  /// The history of the shortest simulation that was found to fail.
  public let timeline: SimulationTimeline
  let plan: SimulationPlan

  /// The commands of the shortest simulation, for each process and each user.
  public var commands: [[[SimulatedCommand]]] { plan.scripts }

  /// The number of decisions of the scheduler in which another job was chosen than the one that had waited longest.
  public var decisions: Int { plan.choices?.count { $0 > 0 } ?? 0 }

  /// The most lines of the history in ``description``.
  private static let mostLines = 200

  /// The invariant, what happened, how to repeat it, and the history.
  public var description: String {
    let users = plan.scripts.enumerated().flatMap { process, scripts in
      scripts.enumerated().filter { !$0.element.isEmpty }.map { user, script in
        "  process \(process + 1), user \(user + 1): \(script.map { "\($0)" }.joined(separator: ", "))"
      }
    }
    let faults = Set(plan.world.servers.flatMap(\.faults.keys)).sorted().map(\.rawValue)
    let lines = timeline.entries.suffix(Self.mostLines).map(\.description)
    let left = timeline.entries.count - lines.count
    return """
      Not so: \(invariant.sentence).
      What happened: \(happened)
      Repeat it with seed \(seed), for example by DOWNPIPE_SIMULATION_SEED=\(seed) swift test --filter …
      The shortest simulation that fails like this (\(strategy), \(decisions) scheduling decisions, \
      \(plan.crashes?.count ?? 0) crashes, faults: \(faults.isEmpty ? "none" : faults.joined(separator: ", "))):
      \(users.joined(separator: "\n"))
      \(left > 0 ? "  (\(left) earlier events are left out)\n" : "")\(lines.joined(separator: "\n"))
      """
  }
}
