/// The result of one turn of a command in the loop.
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
  ///   - afterRun: Called when an awaited run has ended; returning a value ends the command without another turn.
  ///   - turn: Performed by the loop while no download is being leased.
  /// - Throws: The errors of `turn`, `.shutDown`, and `CancellationError`. After a cancellation, a command that has
  ///   begun may still be completed.
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
