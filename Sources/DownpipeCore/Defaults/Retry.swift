/// Placeholder until the table is written.
public struct Retry: RetryPolicy {
  public init() {}
  public func decide(_ failure: Failure) -> RetryDecision { .giveUp }
}
