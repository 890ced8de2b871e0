// Calls: each is an event, and decides in its turn.
extension EngineState {
  /// Takes a call: the run that it stops is stopped at once, and the rest is done in its turn.
  mutating func take(_ call: Call) {
    guard !mode.isStopping || call.isContinuation else { return call.fail(DownloadError.shutDown) }
    #if SABOTAGE
      if context.options.sabotage == .keepsCommands { commands.keep(call) }
    #endif
    var stopped: Run?
    if let reason = call.stopReason, let id = call.ids?.first, let run = slots.runs[id],
      commands.permitStop(of: run, by: call.number), run.stop(reason)
    {
      stopped = run
    }
    commands.begin(call, stopped: stopped)
    due.insert(.turn)
  }

  /// Stops a run for the command that decides.
  mutating func stop(_ run: Run, _ reason: StopReason) {
    if run.stop(reason) { commands.noteStop(by: turn.command) }
  }

  /// Takes an addition, which is done together with others unless an earlier command comes first.
  mutating func take(_ addition: Addition) {
    guard !mode.isStopping else { return addition.answer(.failure(DownloadError.shutDown)) }
    let ids = addition.isAfterCommands ? addition.additions.map(\.request.id) : []
    // Also what is called later for its other downloads comes after it.
    if commands.concern(ids) { begin(addition, after: Set(ids)) } else { commands.append(.addition(addition)) }
    due.insert(.turn)
  }

  /// Adds downloads when the earlier commands for them are over.
  private mutating func begin(_ addition: Addition, after ids: Set<DownloadID>) {
    let call = Call(number: addition.number, ids: ids, isContinuation: true, isAddition: true) { _ in
      { state, _ in .over(state.additions.append(addition)) }
    } _: { result in
      // Otherwise it is answered when it is added.
      if case .failure(let error) = result { addition.answer(.failure(error)) }
    }
    commands.begin(call)
  }

  /// Ends the wait of a caller that was cancelled.
  mutating func cancelCall(_ number: Int) {
    commands.cancel(number)
    // Leases may have waited for it.
    due.insert(.turn)
  }
}
