import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One opening that waits for a background task to end.
final class BackgroundOpening: Sendable {
  enum Delivery: Sendable {
    case file(InboxFile, TransferTag, FinishedAnswer)
    case refusal(FinishedAnswer, TransferTag)
  }

  private struct State {
    var outcome: Result<Delivery, any Error>?
    var waiter: CheckedContinuation<Delivery, any Error>?
  }

  let tag: TransferTag
  let request: URLRequest
  private let state = Mutex(State())

  init(_ tag: TransferTag, _ request: URLRequest) {
    self.tag = tag
    self.request = request
  }

  /// Sets the outcome; the first one counts.
  func settle(_ outcome: Result<Delivery, any Error>) {
    let waiter = state.withLock { state -> CheckedContinuation<Delivery, any Error>? in
      guard state.outcome == nil else { return nil }
      // No reference is kept to a file that was passed on: its reply decides when it is released.
      state.outcome = state.waiter == nil ? outcome : .failure(CancellationError())
      return state.waiter.take()
    }
    waiter?.resume(with: outcome)
  }

  /// Waits for the outcome; call it once.
  func value() async throws -> Delivery {
    try await withCheckedThrowingContinuation { continuation in
      let outcome = state.withLock { state -> Result<Delivery, any Error>? in
        guard let outcome = state.outcome else {
          state.waiter = continuation
          return nil
        }
        state.outcome = .failure(CancellationError())
        return outcome
      }
      if let outcome { continuation.resume(with: outcome) }
    }
  }
}
