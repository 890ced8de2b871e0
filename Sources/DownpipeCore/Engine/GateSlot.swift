internal import Synchronization

/// A gate of this run: what it said last, and the task that listens to it.
struct GateSlot: Sendable {
  let gate: any Gate
  let stop = StopSignal<Void>()
  let latest: Latest
  var isWatched = false

  /// A box for the latest rule, written by the gate's own task.
  final class Latest: Sendable {
    private let state: Mutex<(rule: GateRule, hasReported: Bool)>
    init(_ rule: GateRule) { state = Mutex((rule, false)) }
    func report(_ rule: GateRule) { state.withLock { $0 = (rule, true) } }
    var rule: GateRule { state.withLock { $0.rule } }
    var hasReported: Bool { state.withLock { $0.hasReported } }
  }

  init(_ gate: any Gate) {
    self.gate = gate
    latest = Latest(.closed("\(gate.name): has not reported yet"))
  }

  var rule: GateRule { latest.rule }
}
