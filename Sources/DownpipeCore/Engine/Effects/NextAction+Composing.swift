extension NextAction {
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
        case .job(let job):
          return .job { context, changes in
            do { return AnyDecision(try await job(context, &changes), answer) } catch {
              return AnyDecision({ (_, _) -> NextAction<Value> in throw error }, answer)
            }
          }
        }
      } catch {
        return .over { answer(.failure(error)) }
      }
    }
  }
}
