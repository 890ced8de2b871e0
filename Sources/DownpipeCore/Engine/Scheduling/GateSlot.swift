internal import Synchronization

/// A gate of this run: what it said last, and the task that listens to it.
struct GateSlot: Sendable {
  let gate: any Gate
  let stop = StopSignal<Void>()
  let latest: Latest
  var isWatched = false

  /// A box for the latest rule, written by the gate's own task.
  final class Latest: Sendable {
    private let state: Mutex<(rule: GateRule, reports: Int)>
    init(_ rule: GateRule) { state = Mutex((rule, 0)) }
    func report(_ rule: GateRule) {
      state.withLock { state in
        // A gate that says the same again has seen nothing new.
        if state.reports == 0 || !rule.isSame(as: state.rule) { state.reports += 1 }
        state.rule = rule
      }
    }
    var rule: GateRule { state.withLock { $0.rule } }
    /// How often the gate has said something new.
    var reports: Int { state.withLock { $0.reports } }
    var hasReported: Bool { reports > 0 }
  }

  init(_ gate: any Gate) {
    self.gate = gate
    latest = Latest(.closed("\(gate.name): has not reported yet"))
  }

  var rule: GateRule { latest.rule }
}
