internal import Synchronization

/// The first ranking of the downloads in the ledger, of a downloader that was suspended from the start: what needs ranks
/// begins it, and callers at the same time wait for it together.
final class FirstRanking: Sendable {
  private enum State {
    case open
    case inProgress(Completion)
    case done
  }
  private let state: Mutex<State>

  init(isDone: Bool) { state = Mutex(isDone ? .done : .open) }

  var isDone: Bool { state.withLock { if case .done = $0 { true } else { false } } }

  /// Notes that the ledger ranks by the policy of the pipeline.
  func end() { change(to: .done) }

  /// Ranks, unless that is done.
  /// - Throws: The errors of `rank`, and `CancellationError`. Those who have waited then try themselves.
  func once(_ rank: () async throws -> Void) async throws {
    while let (completion, isOwn) = begin() {
      guard isOwn else {
        try await completion.wait()
        continue
      }
      defer { completion.complete() }
      do { try await rank() } catch {
        change(to: .open)
        throw error
      }
      end()
    }
  }

  /// - Returns: The ranking, and whether the caller has begun it; `nil` if there is nothing to do.
  private func begin() -> (Completion, isOwn: Bool)? {
    state.withLock { state in
      switch state {
      case .done: return nil
      case .inProgress(let other): return (other, false)
      case .open:
        let own = Completion()
        state = .inProgress(own)
        return (own, true)
      }
    }
  }

  private func change(to new: State) {
    state.withLock { state in
      if case .done = state { return }
      state = new
    }
  }
}
