internal import Synchronization

/// The retry policy and the gates as they are now: a replacement takes effect on the runs that have begun before.
final class LivePolicies: Sendable {
  private struct State {
    var retry: any RetryPolicy
    var gates: [any Gate]
    var gateFailure: DownloadError?
  }

  private let state: Mutex<State>

  init(retry: any RetryPolicy, gates: [any Gate]) { state = Mutex(State(retry: retry, gates: gates)) }

  var retry: any RetryPolicy {
    get { state.withLock { $0.retry } }
    set { state.withLock { $0.retry = newValue } }
  }

  var gates: [any Gate] {
    get { state.withLock { $0.gates } }
    set { state.withLock { $0.gates = newValue } }
  }

  /// Why runs that start fail; see ``Gates/failure``.
  var gateFailure: DownloadError? {
    get { state.withLock { $0.gateFailure } }
    set { state.withLock { $0.gateFailure = newValue } }
  }
}
