import DownpipeCore

/// Shortens a simulation that fails: fewer commands, processes, faults, deaths and scheduling decisions, as long as it still
/// fails.
struct SimulationShrinking: Sendable {
  /// The number of simulations to try.
  let attempts: Int
  /// Returns the outcome of a plan if it fails in the same way.
  let run: @Sendable (SimulationPlan) async -> SimulationOutcome?

  func shortest(of found: SimulationPlan) async -> SimulationPlan {
    var search = Search(best: found, left: attempts, run: run)
    await search.shortenCommands()
    await search.removeFaults()
    await search.removeCrashes()
    await search.removeDecisions()
    await search.shortenCommands()
    await search.removeDecisions()
    return search.best
  }
}

private struct Search {
  var best: SimulationPlan
  var left: Int
  let run: @Sendable (SimulationPlan) async -> SimulationOutcome?

  /// Keeps a change if the simulation still fails.
  ///
  /// First with the recorded choices, which fit less and less, and then with others by the strategy.
  private mutating func attempt(_ change: (inout SimulationPlan) -> Void, keepingChoices: Bool = false) async -> Bool {
    var plan = best
    change(&plan)
    var plans = [plan]
    if !keepingChoices {
      var other = plan
      other.choices = nil
      plans.append(other)
    }
    for plan in plans {
      guard left > 0, !Task.isCancelled else { return false }
      left -= 1
      guard let outcome = await run(plan) else { continue }
      best = plan
      (best.choices, best.crashes) = (outcome.choices, outcome.crashes)
      return true
    }
    return false
  }

  /// Leaves out commands: halves, quarters and so on of each user's.
  mutating func shortenCommands() async {
    for process in best.scripts.indices {
      for user in best.scripts[process].indices {
        var size = best.scripts[process][user].count
        while size > 0 {
          var start = 0
          while start < best.scripts[process][user].count {
            let end = min(start + size, best.scripts[process][user].count)
            let isShorter = await attempt { $0.scripts[process][user].removeSubrange(start..<end) }
            if !isShorter { start += size }
          }
          size /= 2
        }
      }
    }
  }

  /// Leaves out faults that are not needed.
  mutating func removeFaults() async {
    let changes: [(inout SimulatedWorld) -> Void] = [
      { $0.networkLosses = 0 }, { $0.diskFailures = 0 }, { $0.ledgerFailures = 0 }, { $0.slowDisk = 0 },
      { $0.slowLedger = 0 }, { $0.stepFailures = 0 }, { $0.blockingStages = 0 }, { $0.diskSpace = nil },
    ]
    for change in changes { _ = await attempt { change(&$0.world) } }
    for fault in Set(best.world.servers.flatMap(\.faults.keys)).sorted() {
      _ = await attempt { plan in
        for index in plan.world.servers.indices { plan.world.servers[index].faults[fault] = nil }
      }
    }
  }

  mutating func removeCrashes() async {
    for step in (best.crashes ?? []).reversed() {
      _ = await attempt({ $0.crashes?.removeAll { $0 == step } }, keepingChoices: true)
    }
  }

  /// Chooses the job that has waited longest at as many steps as possible.
  mutating func removeDecisions() async {
    var size = best.choices?.count ?? 0
    while size > 0 {
      var end = best.choices?.count ?? 0
      while end > 0 {
        let start = max(0, end - size)
        // Many steps have one choice only.
        if best.choices?[start..<min(end, best.choices?.count ?? 0)].contains(where: { $0 > 0 }) == true {
          _ = await attempt(
            { plan in
              for index in start..<min(end, plan.choices?.count ?? 0) { plan.choices?[index] = 0 }
            }, keepingChoices: true)
        }
        end = start
      }
      guard left > 0 else { return }
      size /= 2
    }
  }
}
