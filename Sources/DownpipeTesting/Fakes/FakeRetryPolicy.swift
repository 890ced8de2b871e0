public import DownpipeCore

/// A retry policy with a script; it records the failures.
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

  /// Makes a policy that decides as the script says, one decision a failure, and gives up after the last.
  public convenience init(_ script: RetryDecision...) {
    self.init(script: script)
  }

  /// Makes a policy that asks a closure.
  public convenience init(deciding: @escaping @Sendable (Failure) -> RetryDecision) {
    self.init(script: [], afterwards: deciding)
  }

  /// Makes a policy that decides as the script says, one decision a failure, and asks a closure after the last.
  public init(
    script: [RetryDecision], afterwards: @escaping @Sendable (Failure) -> RetryDecision = { _ in .giveUp }
  ) {
    state = Watched(State(script: script[...]))
    self.afterwards = afterwards
  }

  /// The failures it was shown, in order.
  public var failures: [Failure] { state.value.failures }

  /// Waits until at least `count` failures were shown. Returns early when the waiting task is cancelled.
  public func failures(atLeast count: Int) async {
    await state.wait { $0.failures.count >= count }
  }

  /// Takes the next decision from the script.
  public func decide(_ failure: Failure) -> RetryDecision {
    let scripted = state.update { state in
      state.failures.append(failure)
      return state.script.popFirst()
    }
    return scripted ?? afterwards(failure)
  }
}
