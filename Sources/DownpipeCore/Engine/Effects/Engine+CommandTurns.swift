/// The result of one turn of a command.
enum TurnResult<Value: Sendable>: Sendable {
  /// The command is done.
  case over(Value)
  /// The run has to end first; then the command takes another turn.
  case wait(for: Run)
}

extension Engine {
  /// An attempt to take a turn: it has to wait if an earlier command comes first.
  private enum Attempt<Value: Sendable>: Sendable {
    case done(Value)
    case wait(for: CommandQueue.Pending)
  }

  /// Notes a command that is called now, and returns its number; the caller ends it.
  /// - Parameter ids: The downloads that it concerns; `nil` for all.
  func beginCommand(for ids: Set<DownloadID>?) -> Int {
    options.probe?.note(.called)
    if options.sabotage == .keepsCommands { _ = state.commands.begin([]) }
    return state.commands.begin(ids)
  }

  /// Notes that a command has ended. If it has waited for a run and takes no other turn, leases may have waited for it.
  private func endCommand(_ number: Int) {
    if state.commands.end(number) != nil { context.mailbox.wake() }
  }

  /// Takes turns until the command is done. Earlier commands for the same download come first.
  ///
  /// - Parameters:
  ///   - id: The download.
  ///   - reason: Why its run is stopped before the first turn, unless an earlier command has yet to decide; `nil` if it is not.
  ///   - afterRun: Called when an awaited run has ended; returning a value ends the command without another turn.
  ///   - turn: Performed while no download is being leased.
  /// - Throws: The errors of `turn`, `.shutDown`, and `CancellationError`. After a cancellation, a command that has
  ///   begun may still be completed.
  func takeTurns<Value: Sendable>(
    for id: DownloadID, stopping reason: StopReason? = nil, afterRun: (Run) -> Value? = { _ in nil },
    _ turn: @escaping @Sendable (isolated Engine) async throws -> TurnResult<Value>
  ) async throws -> Value {
    let number = beginCommand(for: [id])
    defer { endCommand(number) }
    var stopped: Run?
    if let reason, let run = state.slots.runs[id], state.commands.permitStop(of: run, by: number), run.stop(reason) {
      stopped = run
    }
    while true {
      let result = try await takeTurn(after: { $0.state.commands.last(for: id, before: number) }) { engine in
        let turn = try await turn(engine)
        // Not later, when the caller goes on: the next command may take its turn at once.
        switch turn {
        case .over: engine.state.commands.end(number)
        // What a run is stopped for by a reason leaves nothing to lease, or is done with the end of the run.
        case .wait(let run): engine.state.commands.wait(number, for: run, comesBeforeLeases: reason == nil)
        }
        return turn
      }
      switch result {
      case .over(let value):
        // An earlier command may have taken its turn after the end of the run.
        return stopped.flatMap(afterRun) ?? value
      case .wait(let run):
        // The run that was stopped first may have ended before this one began.
        if let earlier = stopped, earlier !== run { _ = afterRun(earlier) }
        stopped = nil
        try await run.waitForEndUnlessCancelled()
        if let value = afterRun(run) { return value }
      }
    }
  }

  /// Takes turns of a command for many downloads, until nothing is left.
  ///
  /// - Parameters:
  ///   - filter: Judged once, in the first turn. Further turns concern what the turn before has left.
  ///   - turn: Performed while no download is being leased, for a selection of the ledger and the runs among it; gets the
  ///     number of the command, and returns the runs that the command waits for.
  ///   - end: Called after each turn; returns the downloads that need another one.
  func takeTurns<Value: Sendable>(
    for filter: DownloadFilter,
    _ turn: @escaping @Sendable (isolated Engine, Int, LedgerSelection, [Run]) async throws -> (Value, [Run]),
    end: (Value, [Run]) async throws -> [DownloadID]
  ) async throws {
    let number = beginCommand(for: nil)
    defer { state.commands.end(number) }
    var rest: Set<DownloadID> = []
    repeat {
      let selection: LedgerSelection = rest.isEmpty ? .matching(filter) : .ids(rest.sorted())
      let (value, runs) = try await takeTurn(after: { [rest] engine in
        // In the first turn, those whose runs have ended come first; others may go on meanwhile.
        engine.state.commands.last(before: number) {
          rest.isEmpty ? engine.state.slots.runs[$0] == nil : rest.contains($0)
        }
      }) { engine in
        let (value, runs) = try await turn(engine, number, selection, engine.state.slots.runs(in: selection))
        engine.state.commands.narrow(number, to: Set(runs.map(\.id)))
        return (value, runs)
      }
      rest = Set(try await end(value, runs))
    } while !rest.isEmpty
  }

  /// Takes one turn, when no earlier command comes first.
  private func takeTurn<Value: Sendable>(
    after earlier: @escaping @Sendable (isolated Engine) -> CommandQueue.Pending?,
    _ turn: @escaping @Sendable (isolated Engine) async throws -> Value
  ) async throws -> Value {
    while true {
      let attempt = try await context.mailbox.perform { engine -> Attempt<Value> in
        if engine.options.sabotage != .lateCommands, let earlier = earlier(engine) { return .wait(for: earlier) }
        try await engine.clarifyOwnership()
        return .done(try await turn(engine))
      }
      switch attempt {
      case .wait(let earlier): try await earlier.end.wait()
      case .done(let value): return value
      }
    }
  }
}
