internal import Synchronization

/// What the engine's loop is told: commands of users, outcomes of runs, answers of the ledger, and that a timer or a gate has
/// something new. Everything in it is bounded by what waits for an answer: callers, runs, one exchange.
final class Mailbox: Sendable {
  /// A command, carried out by the loop between two exchanges with the ledger.
  struct Command: Sendable {
    let perform: @Sendable (isolated Engine) async -> Void
    /// Called instead, when the loop has ended.
    let refuse: @Sendable () -> Void
  }

  /// What came since the loop last looked.
  struct Mail: Sendable {
    /// Runs whose work is over, in the order in which they ended.
    var outcomes: [(run: Run, outcome: Outcome)] = []
    /// The answer to the exchange under way.
    var exchanged: Exchange.Answer?
    /// Runs that were not ours any more and have been cleaned up, and whether their download was removed.
    var abandoned: [(run: Run, isGone: Bool)] = []
    /// Waiters for idleness whose task was cancelled.
    var cancelledWaiters: [UInt64] = []
  }

  private struct State {
    var mail = Mail()
    var commands: [Command] = []
    var hasNews = false
    var isClosed = false
    var reader: CheckedContinuation<Void, Never>?
  }
  private let state = Mutex(State())

  // MARK: Posting

  /// Asks the loop to look around: what there is to see is kept elsewhere.
  func wake() { change { _ in } }

  func post(_ outcome: Outcome, of run: Run) { change { $0.mail.outcomes.append((run, outcome)) } }

  func post(_ answer: Exchange.Answer) { change { $0.mail.exchanged = answer } }

  func post(abandoned run: Run, isGone: Bool) { change { $0.mail.abandoned.append((run, isGone)) } }

  func post(cancelledWaiter number: UInt64) { change { $0.mail.cancelledWaiters.append(number) } }

  /// Has the loop do something that must not happen in the middle of leasing, and returns what came of it.
  /// - Throws: what the command throws, and `.shutDown` when the loop has ended.
  func perform<Value: Sendable>(
    _ body: @escaping @Sendable (isolated Engine) async throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
      let command = Command(
        perform: { engine in
          do { continuation.resume(returning: try await body(engine)) } catch { continuation.resume(throwing: error) }
        },
        refuse: { continuation.resume(throwing: DownloadError.shutDown) })
      var isClosed = false
      change { state in
        isClosed = state.isClosed
        if !isClosed { state.commands.append(command) }
      }
      if isClosed { command.refuse() }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
      body(&state)
      state.hasNews = true
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  // MARK: Reading

  /// Returns what came, as soon as there is something. Only the loop reads. The reader's cancellation changes nothing.
  func next() async -> Mail {
    await withCheckedContinuation { continuation in
      let isNow = state.withLock { state in
        if !state.hasNews { state.reader = continuation }
        return state.hasNews
      }
      if isNow { continuation.resume() }
    }
    return state.withLock { state in
      state.hasNews = false
      defer { state.mail = Mail() }
      return state.mail
    }
  }

  /// Takes out the commands, in the order in which they came.
  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// Refuses commands from now on, and those that still wait.
  func close() {
    let commands = state.withLock { state in
      state.isClosed = true
      defer { state.commands = [] }
      return state.commands
    }
    for command in commands { command.refuse() }
  }
}

extension DownloadError {
  /// What calls on a downloader throw once it ends.
  static var shutDown: DownloadError { DownloadError(.shutDown, "the downloader was shut down") }
}
