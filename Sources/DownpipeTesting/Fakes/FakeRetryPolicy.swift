public import DownpipeCore

/// A retry policy that follows a script and records the failures.
///
/// ```swift
/// let retry = FakeRetryPolicy(.resume(after: .seconds(1)), .restart(after: .zero))   // then it gives up
/// ```
public final class FakeRetryPolicy: RetryPolicy {
  private struct State {
    var script: ArraySlice<RetryDecision>
    var failures: [Failure] = []
  }

  private let state: Watched<State>
  private let afterwards: @Sendable (Failure) -> RetryDecision

  /// Creates a policy that returns one decision of the script for each failure, and then gives up.
  public convenience init(_ script: RetryDecision...) {
    self.init(script: script)
  }

  /// Creates a policy that calls the closure.
  public convenience init(deciding: @escaping @Sendable (Failure) -> RetryDecision) {
    self.init(script: [], afterwards: deciding)
  }

  /// Creates a policy that returns one decision of the script for each failure, and then calls the closure.
  public init(
    script: [RetryDecision], afterwards: @escaping @Sendable (Failure) -> RetryDecision = { _ in .giveUp }
  ) {
    state = Watched(State(script: script[...]))
    self.afterwards = afterwards
  }

  /// The failures so far, in order.
  public var failures: [Failure] { state.value.failures }

  /// Waits for at least `count` failures. Returns early when the waiting task is cancelled.
  public func failures(atLeast count: Int) async {
    await state.wait { $0.failures.count >= count }
  }

  /// Returns the next decision of the script.
  public func decide(_ failure: Failure) -> RetryDecision {
    let scripted = state.update { state in
      state.failures.append(failure)
      return state.script.popFirst()
    }
    return scripted ?? afterwards(failure)
  }
}
