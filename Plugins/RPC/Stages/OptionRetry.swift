import DownpipeCore

/// The retry policy of a pipeline, with the number of attempts and the wait that clients have set.
struct OptionRetry: RetryPolicy, Hashable {
  let base: Retry
  let settings: RPCSettings

  var name: String { base.name }
  var summary: String { base.summary }

  func decide(_ failure: Failure) -> RetryDecision {
    let metadata = failure.request?.metadata ?? [:]
    let attempts = OptionKey.number("max-tries", metadata, settings)
    let wait = OptionKey.number("retry-wait", metadata, settings) ?? 0
    guard attempts != nil || wait > 0 else { return base.decide(failure) }
    // 0 means attempts without end.
    var backOff = base.backOff
    // A policy without retries has no waits, and a client may want some.
    if backOff.attempts == 1, backOff.base == .zero { backOff = .exponential(attempts: 1) }
    if let attempts { backOff = backOff.with(attempts: attempts > 0 ? attempts : .max) }
    if wait > 0 { backOff = .constant(.seconds(wait), attempts: backOff.attempts) }
    return Retry(backOff, table: base.table, maximumRetryAfter: base.maximumRetryAfter).decide(failure)
  }
}
