internal import Synchronization

/// Selects candidates as far as limits and gates permit; used for one lease, inside the ledger's transaction.
final class LeaseSelector: Sendable {
  private let limits: AdmissionLimits
  private let rules: [GateRule]
  /// Not all of the slots: the engine changes them while this is in use, and would copy them.
  private let ceiling: Int?
  private let now: Duration
  private let state: Mutex<State>

  private struct State {
    var running: RunningDownloads
    /// The number of downloads that may still be taken.
    var rest: Int
    var dues: [Duration] = []
  }

  init(limits: AdmissionLimits, rules: [GateRule], slots: Slots, most: Int, now: Duration) {
    self.limits = limits
    self.rules = rules
    ceiling = slots.ceiling
    self.now = now
    state = Mutex(State(running: slots.counts, rest: most))
  }

  /// The instants before which policies let refused downloads not start.
  var dues: [Duration] { state.withLock { $0.dues } }

  func select(_ candidate: Candidate) -> LeaseSelection {
    // A new rule of a gate begins a new version of the rules.
    guard rules.areOpen(for: candidate) else { return .hold(until: nil) }
    return state.withLock { state in
      guard state.rest > 0, state.running.hasDescriptors(upTo: ceiling) else { return .stop }
      switch limits.admit(candidate, beside: state.running, at: now) {
      case .admitted:
        state.rest -= 1
        state.running.insert(candidate)
        limits.started(candidate, at: now)
        return .take
      case .full: return .stop
      case .hostFull, .refused: return .skip
      case .wait(_, let due, let scope):
        state.dues.append(due)
        return scope == .all ? .stop : .hold(until: due)
      }
    }
  }
}

extension [GateRule] {
  /// Whether all gates are open for a download.
  func areOpen(for candidate: Candidate) -> Bool {
    allSatisfy { if case .closed = $0.verdict(for: candidate) { false } else { true } }
  }
}
