/// What one turn in the loop did for a command.
enum Turn<Value: Sendable>: Sendable {
  /// The command is done.
  case over(Value)
  /// The run has to end first; then the command takes another turn.
  case wait(for: Run)
}

extension Engine {
  /// Takes turns in the loop until the command is done.
  ///
  /// - Parameters:
  ///   - afterRun: called when a run that was waited for has ended; a value ends the command without another turn.
  ///   - turn: performed by the loop, while nothing is leased.
  /// - Throws: what `turn` throws, `.shutDown`, and `CancellationError`; a command that has begun is then done later or
  ///   not at all.
  func takeTurns<Value: Sendable>(
    afterRun: (Run) -> Value? = { _ in nil },
    _ turn: @escaping @Sendable (isolated Engine) async throws -> Turn<Value>
  ) async throws -> Value {
    while true {
      switch try await context.mailbox.perform(turn) {
      case .over(let value): return value
      case .wait(let run):
        try await run.endUnlessCancelled()
        if let value = afterRun(run) { return value }
      }
    }
  }
}
