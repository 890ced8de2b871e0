internal import Synchronization

/// The messages to the engine's loop: commands of users, outcomes of runs, and news of timers and gates.
///
/// The number of messages is bounded by the number of senders that wait for an answer: callers and runs.
final class Mailbox: Sendable {
  /// A command, which is carried out between two exchanges with the ledger.
  struct Command: Sendable {
    let perform: @Sendable (isolated Engine) async -> Void
    /// Called instead of `perform` if the loop has ended.
    let refuse: @Sendable () -> Void
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
    /// Idle waiters whose task was cancelled.
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

  /// Wakes the loop without a message: the news is stored elsewhere.
  /// - Parameter forTurn: Whether there may be something for a turn to do.
  func wake(forTurn: Bool = true) { change(forTurn: forTurn) { _ in } }

  func post(_ outcome: Outcome, of run: Run) { change { $0.mail.outcomes.append((run, outcome)) } }

  /// - Parameter wakes: `false` only as a ``Sabotage``.
  func postEndOfTurn(wakes: Bool = true) { change(forTurn: false, wakes: wakes) { $0.mail.hasEndedTurn = true } }

  func post(abandoned run: Run) { change { $0.mail.abandoned.append(run) } }

  func post(cancelledWaiter number: UInt64) { change { $0.mail.cancelledWaiters.append(number) } }

  /// Makes the loop run a command that must not run during a lease, and returns its result.
  /// - Throws: The errors of the command, and `.shutDown` if the loop has ended.
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

  private func change(forTurn: Bool = true, wakes: Bool = true, _ body: (inout State) -> Void) {
    let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
      body(&state)
      guard wakes else { return nil }
      if forTurn { state.mail.needsTurn = true }
      state.hasNews = true
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  // MARK: Reading

  /// Waits for messages and returns them. Only the loop calls this. Cancelling the loop's task does not end the wait.
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

  /// Removes and returns the commands, in the order of their arrival.
  func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// Rejects waiting and future commands.
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
  /// The error of calls on a downloader that is shut down.
  static var shutDown: DownloadError { DownloadError(.shutDown, "the downloader was shut down") }
}
