internal import Synchronization

/// A gate with its latest rule, and the signal that stops watching it.
struct WatchedGate: Sendable {
  let gate: any Gate
  let stop = StopSignal<Void>()
  let latest: Latest
  var isWatched = false

  /// The latest rule, written by the task that watches the gate.
  final class Latest: Sendable {
    private let state: Mutex<(rule: GateRule, reports: Int)>
    init(_ rule: GateRule) { state = Mutex((rule, 0)) }
    func report(_ rule: GateRule) {
      state.withLock { state in
        // An equal rule is not news.
        if state.reports == 0 || !rule.isSame(as: state.rule) { state.reports += 1 }
        state.rule = rule
      }
    }
    var rule: GateRule { state.withLock { $0.rule } }
    /// The number of new rules that the gate has reported.
    var reports: Int { state.withLock { $0.reports } }
    var hasReported: Bool { reports > 0 }
  }

  init(_ gate: any Gate) {
    self.gate = gate
    latest = Latest(.closed("\(gate.name): has not reported yet"))
  }

  var rule: GateRule { latest.rule }
}
