/// The messages to the engine's loop: what callers ask for, outcomes of runs, and rules of gates.
///
/// The number of messages is bounded by the number of senders: callers, up to three for each, and runs.
final class Mailbox: Sendable {
  /// The messages since the loop last read them.
  struct Mail: Sendable {
    /// Runs whose work has ended, in order.
    var outcomes: [(run: Run, outcome: Outcome)] = []
    /// Whether the turn in progress has ended.
    var hasEndedTurn = false
    /// Whether there may be something for a turn to do.
    var needsTurn = false
    /// Runs that the ledger had refused and that have been cleaned up.
    var cleanedUp: [Run] = []
    /// The last two different rules that gates have reported, by the numbers of the gates. The last one alone would not say
    /// that a gate was closed for a moment, and that what waited for it may try again.
    var rules = OrderedTable<Int, [GateRule]>()
    /// What callers ask for, in the order of their calls.
    var calls: [CallerMessage] = []
  }

  /// What a caller asks for.
  enum CallerMessage: Sendable {
    case call(Call)
    case addition(Addition)
    /// The caller with this number was cancelled.
    case cancelled(Int)

    /// Says that the loop has ended.
    func refuse() {
      switch self {
      case .call(let call): call.fail(DownloadError.shutDown)
      case .addition(let addition): addition.answer(.failure(DownloadError.shutDown))
      case .cancelled: break
      }
    }
  }

  private struct State {
    var mail = Mail()
    var lastCall = 0
    var hasNews = false
    var isClosed = false
  }
  private let state = Monitor(State())
  private let probe: EngineProbe?

  init(probe: EngineProbe? = nil) { self.probe = probe }

  // MARK: Posting

  /// Wakes the loop without a message: the news is stored elsewhere.
  /// - Parameter forTurn: Whether there may be something for a turn to do.
  func wake(forTurn: Bool = true) { change(forTurn: forTurn) { _ in } }

  func post(_ outcome: Outcome, of run: Run) { change { $0.mail.outcomes.append((run, outcome)) } }

  func postEndOfTurn() { change(forTurn: false) { $0.mail.hasEndedTurn = true } }

  #if SABOTAGE
    func postEndOfTurn(isLostBesideOutcomes: Bool) {
      change(forTurn: false) { $0.mail.hasEndedTurn = $0.mail.outcomes.isEmpty }
    }
  #endif

  /// Posts the rule that a gate with a number has reported.
  func post(_ rule: GateRule, of gate: Int) {
    change { state in
      let earlier = state.mail.rules[gate] ?? []
      if let last = earlier.last, rule.isSame(as: last) { return }
      state.mail.rules[gate] = earlier.suffix(1) + [rule]
    }
  }

  func post(cleanedUp run: Run) { change { $0.mail.cleanedUp.append(run) } }

  // MARK: Calls

  /// Calls for what is decided in a turn, and returns what it ends with. Nothing is leased while it is decided.
  ///
  /// - Parameters:
  ///   - ids: The downloads that it concerns: earlier commands for them come first. `nil` for all; if it concerns none, it
  ///     waits for no command.
  ///   - reason: Why the run of the download is stopped at once, unless an earlier command has yet to decide; `nil` if it is
  ///     not.
  ///   - isContinuation: Whether it belongs to a command that was called before: it is not refused while the downloader
  ///     stops.
  ///   - decision: Gets the run that was stopped at once.
  /// - Throws: What the command throws, `.shutDown`, and `CancellationError`. After a cancellation, what has begun may still
  ///   be completed.
  func call<Value: Sendable>(
    for ids: Set<DownloadID>?, stopping reason: StopReason? = nil, isContinuation: Bool = false,
    _ decision: @escaping @Sendable (Run?) -> Decision<Value>
  ) async throws -> Value {
    if !isContinuation { probe?.note(.called) }
    return try await call { number, answer in
      .call(
        Call(number: number, ids: ids, stopReason: reason, isContinuation: isContinuation, decision, answer))
    }
  }

  /// A number that is larger than all earlier ones.
  var nextNumber: Int {
    state.update { state in
      state.lastCall += 1
      return state.lastCall
    }
  }

  /// Performs a job in a turn, as a part of what was called before.
  /// - Throws: The errors of the job, and `.shutDown` if the loop has ended.
  func perform<Value: Sendable>(
    _ job: @escaping @Sendable (EngineContext, inout Changes) async throws -> Value
  ) async throws -> Value {
    try await call(for: [], isContinuation: true) { _ in
      { _, _ in
        .job { context, changes in
          let value = try await job(context, &changes)
          return { _, _ in .over(value) }
        }
      }
    }
  }

  /// Adds downloads in a turn.
  ///
  /// - Parameters:
  ///   - afterCommands: Whether earlier commands for these downloads come first.
  ///   - check: Performed in the same turn before; if it throws, nothing is added.
  /// - Throws: The errors of `check` and of the ledger, and `.shutDown` if the loop has ended.
  func add(
    _ additions: [LedgerAddition], afterCommands: Bool = true,
    if check: (@Sendable (EngineContext) async throws -> Void)? = nil
  ) async throws -> [LedgerAddOutcome] {
    probe?.note(.called)
    return try await call { number, answer in
      .addition(
        Addition(
          number: number, additions: additions, isAfterCommands: afterCommands, check: check, answer: answer))
    }
  }

  private func call<Value: Sendable>(
    _ message: (Int, @escaping @Sendable (Result<Value, any Error>) -> Void) -> CallerMessage
  ) async throws -> Value {
    let number = nextNumber
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        post(message(number) { continuation.resume(with: $0) })
        // It may have been cancelled before.
        if Task.isCancelled { post(.cancelled(number)) }
      }
    } onCancel: {
      post(.cancelled(number))
    }
  }

  private func post(_ message: CallerMessage) {
    var isClosed = false
    change(forTurn: false) { state in
      isClosed = state.isClosed
      if !isClosed { state.mail.calls.append(message) }
    }
    if isClosed { message.refuse() }
  }

  private func change(forTurn: Bool = true, _ body: (inout State) -> Void) {
    state.update { state in
      body(&state)
      if forTurn { state.mail.needsTurn = true }
      state.hasNews = true
    }
  }

  // MARK: Reading

  /// Whether callers wait for the loop, for tests.
  var hasCalls: Bool { state.read { !$0.mail.calls.isEmpty } }

  /// Waits for messages and returns them. Only the loop calls this. Cancelling the loop's task does not end the wait.
  func next() async -> Mail {
    await state.waitThroughCancellation { $0.hasNews }
    return state.update { state in
      state.hasNews = false
      defer { state.mail = Mail() }
      return state.mail
    }
  }

  /// Removes and returns the rules that gates have reported.
  func takeRules() -> OrderedTable<Int, [GateRule]> {
    state.update { state in
      defer { state.mail.rules = OrderedTable() }
      return state.mail.rules
    }
  }

  /// Rejects waiting and future calls.
  func close() {
    let calls = state.update { state in
      state.isClosed = true
      defer { state.mail.calls = [] }
      return state.mail.calls
    }
    for call in calls { call.refuse() }
  }
}

extension DownloadError {
  /// The error of calls on a downloader that is shut down.
  static var shutDown: DownloadError { DownloadError(.shutDown, "the downloader was shut down") }
}
