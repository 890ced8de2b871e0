internal import Synchronization

/// Selects candidates as far as limits and gates permit; used for one lease, inside the ledger's transaction.
final class LeaseSelector: Sendable {
  private let policies: [any AdmissionPolicy]
  private let rules: [GateRule]
  private let slots: Slots
  private let running: Mutex<RunningDownloads>

  init(policies: [any AdmissionPolicy], rules: [GateRule], slots: Slots) {
    self.policies = policies
    self.rules = rules
    self.slots = slots
    running = Mutex(slots.counts)
  }

  func select(_ candidate: Candidate) -> LeaseSelection {
    guard rules.areOpen(for: candidate) else { return .skip }
    return running.withLock { running in
      guard slots.hasDescriptors(beside: running) else { return .stop }
      for policy in policies {
        switch policy.admit(candidate, beside: running) {
        case .admitted: continue
        case .full: return .stop
        case .hostFull, .refused: return .skip
        }
      }
      running.insert(candidate)
      return .take
    }
  }
}

extension [GateRule] {
  /// Whether all gates are open for a download.
  func areOpen(for candidate: Candidate) -> Bool {
    allSatisfy { if case .closed = $0.verdict(for: candidate) { false } else { true } }
  }
}

extension Array where Element == any AdmissionPolicy {
  /// Why a download may not run beside others; `nil` if all policies admit it.
  func refusal(_ candidate: Candidate, beside running: RunningDownloads) -> String? {
    for policy in self {
      switch policy.admit(candidate, beside: running) {
      case .admitted: continue
      case .full(let reason), .hostFull(let reason), .refused(let reason): return reason
      }
    }
    return nil
  }
}
