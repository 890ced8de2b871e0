extension NextAction {
  /// It is over when errands have ended: with the first of their errors, or with a value.
  static func over(_ value: Value, after ends: [Completion]) -> NextAction {
    guard !ends.isEmpty else { return .over(value) }
    return .errand(for: [], isLast: true) { _, _ in
      var failure: (any Error)?
      for end in ends { do { try await end.waitThroughCancellation() } catch { failure = failure ?? error } }
      if let failure { throw failure }
      return { _, _ in .over(value) }
    }
  }

  /// What comes next if something else follows when this is over.
  func then<Other>(
    _ next: @escaping @Sendable (inout EngineState, EngineState.Instant, Value) throws -> NextAction<Other>
  ) -> NextAction<Other> {
    switch self {
    case .over(let value): .job { _, _ in { try next(&$0, $1, value) } }
    case .wait(let runs, let comesBeforeLeases, let then):
      .wait(for: runs, comesBeforeLeases: comesBeforeLeases) { try then(&$0, $1).then(next) }
    case .job(let job):
      .job { context, changes in
        let decision = try await job(context, &changes)
        return { try decision(&$0, $1).then(next) }
      }
    case .errand(let ids, _, let errand):
      .errand(for: ids) { context, changes in
        let decision = try await errand(context, &changes)
        return { try decision(&$0, $1).then(next) }
      }
    }
  }
}

extension AnyDecision {
  /// - Parameter answer: Gets the value of the command, or what it has thrown.
  init<Value>(_ decision: @escaping Decision<Value>, _ answer: @escaping @Sendable (Result<Value, any Error>) -> Void) {
    decide = { state, instant in
      do {
        switch try decision(&state, instant) {
        case .over(let value): return .over { answer(.success(value)) }
        case .wait(let runs, let comesBeforeLeases, let then):
          return .wait(for: runs, comesBeforeLeases: comesBeforeLeases, then: AnyDecision(then, answer))
        case .job(let job): return .job { await AnyDecision(of: job, $0, &$1, answer) }
        case .errand(let ids, let isLast, let errand):
          return .errand(for: ids, isLast: isLast) { await AnyDecision(of: errand, $0, &$1, answer) }
        }
      } catch {
        return .over { answer(.failure(error)) }
      }
    }
  }

  /// What is decided after a job or an errand.
  private init<Value>(
    of work: @Sendable (EngineContext, inout Changes) async throws -> Decision<Value>, _ context: EngineContext,
    _ changes: inout Changes, _ answer: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) async {
    do { self.init(try await work(context, &changes), answer) } catch {
      self.init({ (_, _) -> NextAction<Value> in throw error }, answer)
    }
  }
}
