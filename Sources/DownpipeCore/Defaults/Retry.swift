/// Tries again where that makes sense: a ``FailureTable`` says what a failure means, a ``BackOff`` how often and
/// how long to wait.
///
/// ```swift
/// Retry(.exponential(attempts: 8), table: .standard.with(.httpStatus(404), .resume, because: "it is being uploaded"))
/// Retry(                            // 404: three times, 10 s apart, whatever holds for other failures
///   table: .standard.with(
///     .httpStatus(404), .resume, because: "it is being uploaded", backOff: .constant(.seconds(10), attempts: 3)))
/// ```
/// - Attempts are counted in a row and *without progress*: a transfer that gets a byte further than it ever was
///   has all its attempts again. Bytes that replace discarded ones are no progress, so that restarts come to an end.
/// - Waiting for what is missing (the network, room on the disk, whoever holds the partial) uses up no attempts.
/// - A server's `Retry-After` (RFC 9110 §10.2.3) is obeyed: the back-off begins when that time is over. Where it
///   asks for more than ``maximumRetryAfter`` the failure is reported: coming earlier would be
///   rude, and waiting that long is for somebody else to decide. The bytes are kept either way.
public struct Retry: RetryPolicy, Hashable {
  /// How often and how long.
  public let backOff: BackOff
  /// What each failure means.
  public let table: FailureTable
  /// The longest `Retry-After` to sit out.
  public let maximumRetryAfter: Duration

  /// Makes a policy.
  ///
  /// - Parameters:
  ///   - backOff: how often to try and how long to wait.
  ///   - table: what each failure means.
  ///   - maximumRetryAfter: the longest `Retry-After` to sit out; an hour unless told.
  public init(
    _ backOff: BackOff = .exponential(attempts: 5), table: FailureTable = .standard,
    maximumRetryAfter: Duration = .seconds(3600)
  ) {
    self.backOff = backOff
    self.table = table
    self.maximumRetryAfter = maximumRetryAfter
  }

  /// How often, and how long it waits.
  public var summary: String { backOff.description }

  /// What to do about a failure: the table's row, while attempts are left and the server does not ask for too long.
  public func decide(_ failure: Failure) -> RetryDecision {
    let row = table.row(for: failure.error)
    // A row's own count and waits are for failures of its kind; the policy's are for all.
    let (backOff, failures) = row.backOff.map { ($0, failure.repeated) } ?? (self.backOff, failure.consecutive)
    // Who wants one attempt wants no waiting either.
    if backOff.attempts > 1, failure.repeated < row.attempts ?? .max, let what = Self.awaited[row.action] {
      return .wait(for: what, atMost: Self.patience(what))
    }
    guard failures < backOff.attempts, failure.repeated < row.attempts ?? .max,
      let wait = wait(after: failure, backOff.delay(afterFailures: failures, random: failure.random))
    else { return .giveUp }
    return switch row.action {
    case .resume: .resume(after: wait)
    case .restart: .restart(after: wait)
    // A dead link is not the server's trouble: the fresh one is used at once, unless it was dead as well.
    case .refresh: .refresh(after: failures == 1 && failure.error.retryAfter == nil ? .zero : wait)
    default: .giveUp
    }
  }

  private static let awaited: [FailureTable.Action: Awaited] = [
    .waitForNetwork: .network, .waitForDisk: .disk, .waitForOwner: .owner,
    .waitForDescriptors: .descriptors,
  ]

  /// After so long it is tried again although no network and no room was seen: not everything can be seen.
  private static func patience(_ what: Awaited) -> Duration {
    switch what {
    case .descriptors: .seconds(1)
    case .owner: .seconds(5)
    case .network, .disk, .link: .seconds(30)
    }
  }

  /// How long to wait; `nil` when the server asks for longer than anybody wants to wait.
  private func wait(after failure: Failure, _ delay: Duration) -> Duration? {
    guard let asked = failure.error.retryAfter?.delay(from: failure.now) else { return delay }
    return asked <= maximumRetryAfter ? asked + delay : nil
  }
}
