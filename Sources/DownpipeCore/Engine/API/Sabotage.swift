// Only in builds of this repository's tests (.ci/build): no product has it.
#if SABOTAGE
  /// A defect that a test of simulations switches on, to prove that they find it.
  package enum Sabotage: Sendable, CaseIterable {
    /// A command does not wait for earlier commands for the same download.
    case lateCommands
    /// Idle waiters are resumed when nothing runs, although downloads may wait in the ledger.
    case idleWithoutSecondLook
    /// The loop does not learn of the end of a turn if the work of a run ends at the same time.
    case lostMessage
    /// A leased download is started twice.
    case startsTwice
    /// A command is noted twice, and ends once.
    case keepsCommands
    /// A closed gate stops no run.
    case runsPastGates
    /// Each resume begins anew, as if the file on the server had changed.
    case restartsAlways
    /// The states of downloads that do not run are not told.
    case tellsNothing
    /// What a step returns is not looked at.
    case trustsSteps
  }
#endif
