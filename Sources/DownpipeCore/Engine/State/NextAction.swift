/// What a command does next.
enum NextAction<Value: Sendable>: Sendable {
  /// It is over: its caller gets the value when what has changed was published.
  case over(Value)
  /// Runs have to end first; then it decides again, when no earlier command comes first.
  ///
  /// - Parameter comesBeforeLeases: Whether it has to decide before the next lease, because the download may be leased.
  case wait(for: [Run], comesBeforeLeases: Bool = false, then: Decision<Value>)
  /// The ledger is asked; then it decides again, and no other job is performed in between.
  case job(@Sendable (EngineContext, inout Changes) async throws -> Decision<Value>)
  /// A disk is asked, which may not answer; then it decides again, in a later turn. Turns go on meanwhile; errands and runs of
  /// these downloads wait for it.
  ///
  /// - Parameter isLast: Whether it is over then, so that no later command has to wait.
  case errand(
    for: Set<DownloadID>, isLast: Bool = false,
    @Sendable (EngineContext, inout Changes) async throws -> Decision<Value>)
}

/// Decides what a command does next, in one step of the state.
///
/// It waits for nothing, and a job does not see the state: so what a decision has seen is still true when it has decided.
typealias Decision<Value: Sendable> = @Sendable (inout EngineState, EngineState.Instant) throws -> NextAction<Value>

/// What waits for the ledger, and does not see the state. One is in progress at a time.
struct Job: Sendable {
  /// Takes what the job has found, and may begin another job.
  typealias Conclusion = @Sendable (inout EngineState, EngineState.Instant) -> Job?

  let perform: @Sendable (EngineContext) async -> Conclusion

  /// Does nothing: the actions so far are carried out before the turn goes on.
  static let effectsFirst = Job { _ in { _, _ in nil } }
}

/// What a job has changed in the ledger. The state notes it when the job has ended, also after a failure.
struct Changes: Sendable {
  /// Downloads that have changed.
  var ids: [DownloadID] = []
  /// What events were applied to.
  var transitions: [LedgerBulkResult] = []
  /// Results of other changes.
  var updates: [LedgerBulkResult] = []
  var removed: [RemovedDownloads.Summary] = []
  /// Whether a change has failed: the ledger is looked at as after changes by others.
  var mustLookAgain = false
  /// What has to be done now.
  var due: EngineState.Work = []
  /// Whether the ledger has failed, and rests.
  var mustRest = false
}

/// What a caller waits for. It is called after what has changed was published.
typealias Answer = @Sendable () -> Void

/// A ``Decision`` of a command, without the type of its value.
struct AnyDecision: Sendable {
  enum AnyNextAction: Sendable {
    case over(Answer)
    case wait(for: [Run], comesBeforeLeases: Bool, then: AnyDecision)
    case job(@Sendable (EngineContext, inout Changes) async -> AnyDecision)
    case errand(for: Set<DownloadID>, isLast: Bool, @Sendable (EngineContext, inout Changes) async -> AnyDecision)
  }

  let decide: @Sendable (inout EngineState, EngineState.Instant) -> AnyNextAction
}
