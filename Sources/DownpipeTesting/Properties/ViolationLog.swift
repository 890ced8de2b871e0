import Synchronization

/// A property that a queue must have; see ``QueueProperties``.
@_spi(Ledger) public enum QueueProperty: String, Sendable, Hashable, CaseIterable {
  /// No download begins when a limit is reached, unless it is started by hand, and lowered limits stop running
  /// downloads.
  case limits = "limits are never exceeded"
  /// Lowered limits stop the running downloads that do not fit beside those with smaller ranks, and no others.
  case stops = "lowered limits stop the lowest ranked downloads only"
  /// The ledger leases the downloads that may start in the order of their ranks.
  case order = "the order of the ranks holds"
  /// The rank in the ledger is the one that the policy gives to the present record.
  case ranks = "ranks are those of the policy"
  /// No download starts before one that was added longer before it than the policy's bound.
  case bound = "no download starves beyond the bound"
  /// A download that is paused, cancelled, failed or removed does not run.
  case paused = "no paused download runs"
  /// No download runs while a gate is closed or all downloads are suspended.
  case gates = "no download runs while a gate is closed"
  /// A download has at most one transfer at a time.
  case oneTransfer = "a download has one transfer at a time"
  /// A download ends once, and a finished one has its file.
  case ending = "every download ends in one final state"
  /// Each download that may run runs, and everything that is held is released.
  case slots = "slots are neither leaked nor left empty"
  /// No operation waits forever or throws an unexpected error.
  case response = "every operation ends"
}

/// A property that a queue does not have.
struct Violation: Error, Sendable {
  let property: QueueProperty
  let text: String
}

/// Collects violations. It can be used from any thread.
final class ViolationLog: Sendable {
  private let state = Mutex<Violation?>(nil)

  /// Keeps the first violation.
  func add(_ property: QueueProperty, _ text: String) {
    state.withLock { if $0 == nil { $0 = Violation(property: property, text: text) } }
  }

  /// - Throws: The first violation, if there is one.
  func check() throws {
    if let violation = state.withLock({ $0 }) { throw violation }
  }
}
