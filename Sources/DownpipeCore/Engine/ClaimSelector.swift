internal import Synchronization

/// Takes candidates while limits and gates allow; used for one lease, inside the ledger's transaction.
final class LeaseSelector: Sendable {
  private let policies: [any AdmissionPolicy]
  private let rules: [GateRule]
  private let running: Mutex<RunningDownloads>

  init(policies: [any AdmissionPolicy], rules: [GateRule], running: RunningDownloads) {
    self.policies = policies
    self.rules = rules
    self.running = Mutex(running)
  }

  func select(_ candidate: Candidate) -> LeaseSelection {
    for rule in rules {
      if case .closed = rule.verdict(for: candidate) { return .skip }
    }
    return running.withLock { running in
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

extension Pipeline {
  /// The admission policies that are in force: the default when none is written down.
  var limits: [any AdmissionPolicy] { admission.isEmpty ? [DefaultLimit()] : admission }
}

/// What limits a pipeline that says nothing about limits: five at once.
struct DefaultLimit: AdmissionPolicy {
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    running.total < 5 ? .admitted : .full("5 of 5 downloads are running")
  }
  var maximumConcurrent: Int? { 5 }
}
