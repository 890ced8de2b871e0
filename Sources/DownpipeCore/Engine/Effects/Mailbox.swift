/// The messages to the engine: outcomes of runs and rules of gates for its loop, and calls of users for its turns.
///
/// The number of messages is bounded by the number of senders that wait for an answer: callers and runs.
final class Mailbox: Sendable {
  /// What a caller waits for. It is called after the turn has published what has changed.
  typealias Answer = @Sendable () -> Void

  /// What callers ask for, which is done in a turn.
  enum Call: Sendable {
    case command(Command)
    case addition(Addition)

    /// Called if the loop has ended.
    var refuse: Answer {
      switch self {
      case .command(let command): command.refuse
      case .addition(let addition): { addition.answer(.failure(DownloadError.shutDown)) }
      }
    }
  }

  /// A command, which is carried out between two exchanges with the ledger.
  struct Command: Sendable {
    let perform: @Sendable (isolated Engine) async -> Answer
    let refuse: Answer
  }

  /// Downloads to be added. Those of several callers are added together, beside the exchange of the turn.
  struct Addition: Sendable {
    let additions: [LedgerAddition]
    /// Has to succeed in the same turn before the downloads are added.
    let check: (@Sendable (isolated Engine) async throws -> Void)?
    let answer: @Sendable (Result<[LedgerAddOutcome], any Error>) -> Void
  }

  /// The messages since the loop last read them.
  struct Mail: Sendable {
    /// Runs whose work has ended, in order.
    var outcomes: [(run: Run, outcome: Outcome)] = []
    /// Whether the turn in progress has ended.
    var hasEndedTurn = false
    /// Whether there may be something for a turn to do.
    var needsTurn = false
    /// Runs that have lost their lease and have been cleaned up.
    var abandoned: [Run] = []
    /// The last two different rules that gates have reported, by the numbers of the gates. The last one alone would not say
    /// that a gate was closed for a moment, and that what waited for it may try again.
    var rules = OrderedTable<Int, [GateRule]>()
  }

  private struct State {
    var mail = Mail()
    var calls: [Call] = []
    var hasNews = false
    var isClosed = false
  }
  private let state = Monitor(State())

  // MARK: Posting

  /// Wakes the loop without a message: the news is stored elsewhere.
  /// - Parameter forTurn: Whether there may be something for a turn to do.
  func wake(forTurn: Bool = true) { change(forTurn: forTurn) { _ in } }

  func post(_ outcome: Outcome, of run: Run) { change { $0.mail.outcomes.append((run, outcome)) } }

  /// - Parameter isLost: Whether it is lost beside an outcome: only as a ``Sabotage``.
  func postEndOfTurn(isLost: Bool = false) {
    change(forTurn: false) { $0.mail.hasEndedTurn = !isLost || $0.mail.outcomes.isEmpty }
  }

  /// Posts the rule that a gate with a number has reported.
  func post(_ rule: GateRule, of gate: Int) {
    change { state in
      let earlier = state.mail.rules[gate] ?? []
      if let last = earlier.last, rule.isSame(as: last) { return }
      state.mail.rules[gate] = earlier.suffix(1) + [rule]
    }
  }

  func post(abandoned run: Run) { change { $0.mail.abandoned.append(run) } }

  /// Performs a command in a turn, in which nothing is leased meanwhile, and returns its result.
  /// - Throws: The errors of the command, and `.shutDown` if the loop has ended.
  func perform<Value: Sendable>(
    _ body: @escaping @Sendable (isolated Engine) async throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
      let command = Command(
        perform: { engine in
          do {
            let value = try await body(engine)
            return { continuation.resume(returning: value) }
          } catch {
            return { continuation.resume(throwing: error) }
          }
        },
        refuse: { continuation.resume(throwing: DownloadError.shutDown) })
      post(.command(command))
    }
  }

  /// Adds downloads in a turn.
  /// - Parameter check: Performed in the same turn before; if it throws, nothing is added.
  /// - Throws: The errors of `check` and of the ledger, and `.shutDown` if the loop has ended.
  func add(
    _ additions: [LedgerAddition], if check: (@Sendable (isolated Engine) async throws -> Void)? = nil
  ) async throws -> [LedgerAddOutcome] {
    try await withCheckedThrowingContinuation { continuation in
      post(.addition(Addition(additions: additions, check: check) { continuation.resume(with: $0) }))
    }
  }

  private func post(_ call: Call) {
    var isClosed = false
    change { state in
      isClosed = state.isClosed
      if !isClosed { state.calls.append(call) }
    }
    if isClosed { call.refuse() }
  }

  private func change(forTurn: Bool = true, _ body: (inout State) -> Void) {
    state.update { state in
      body(&state)
      if forTurn { state.mail.needsTurn = true }
      state.hasNews = true
    }
  }

  // MARK: Reading

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

  /// Removes and returns what callers have asked for, in the order of their calls.
  func takeCalls() -> [Call] {
    state.update { state in
      defer { state.calls = [] }
      return state.calls
    }
  }

  /// Rejects waiting and future calls.
  func close() {
    let calls = state.update { state in
      state.isClosed = true
      defer { state.calls = [] }
      return state.calls
    }
    for call in calls { call.refuse() }
  }
}

extension DownloadError {
  /// The error of calls on a downloader that is shut down.
  static var shutDown: DownloadError { DownloadError(.shutDown, "the downloader was shut down") }
}
