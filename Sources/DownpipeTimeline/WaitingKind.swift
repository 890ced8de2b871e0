package import DownpipeCore

/// A reason to wait without its text, for labels.
package enum WaitingKind: String, Hashable, Sendable, CaseIterable {
  case turn, limit, gate, machine, retry, missing, suspended, elsewhere, dependency

  /// Creates the kind of a reason.
  package init(_ reason: WaitingReason) {
    switch reason {
    case .turn: self = .turn
    case .limit, .preempted: self = .limit
    case .gate: self = .gate
    case .machine: self = .machine
    case .retry: self = .retry
    case .missing: self = .missing
    case .suspended: self = .suspended
    case .elsewhere: self = .elsewhere
    case .dependency: self = .dependency
    }
  }
}

extension WaitingReason {
  /// The error after which the download waits; `nil` if it waits for another reason.
  package var error: DownloadError? {
    switch self {
    case .retry(_, let error), .missing(_, _, let error): error
    case .turn, .limit, .preempted, .gate, .machine, .suspended, .elsewhere, .dependency: nil
    }
  }
}
