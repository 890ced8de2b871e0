/// A retry policy that combines a ``FailureTable``, which says what to do about a failure, and a ``BackOff``, which
/// says how often and after which wait.
///
/// ```swift
/// Retry(.exponential(attempts: 8), table: .standard.with(.httpStatus(404), .resume, because: "it is being uploaded"))
/// Retry(                            // 404: three times, 10 s apart, independent of other failures
///   table: .standard.with(
///     .httpStatus(404), .resume, because: "it is being uploaded", backOff: .constant(.seconds(10), attempts: 3)))
/// ```
/// - Attempts are counted in a row and *without progress*: when a transfer gets a byte further than ever before, the
///   count starts again. Bytes that replace discarded ones are no progress, so restarts come to an end.
/// - A fault of this machine uses up no attempts: the download goes back (see ``RetryDecision/giveBack``).
/// - Waiting for a missing resource (the network, space on the disk, file descriptors, the release of the partial by
///   its owner) uses up no attempts. A policy with a single attempt does not wait.
/// - A server's `Retry-After` (RFC 9110 §10.2.3) is obeyed: the back-off begins when that time has passed. If the
///   server asks for more than ``maximumRetryAfter``, the download fails and keeps its bytes.
public struct Retry: RetryPolicy, Hashable {
  /// The number of attempts and the waits between them.
  public let backOff: BackOff
  /// What to do about each failure.
  public let table: FailureTable
  /// The longest `Retry-After` that is waited for.
  public let maximumRetryAfter: Duration

  /// Creates a retry policy.
  ///
  /// - Parameters:
  ///   - backOff: The number of attempts and the waits between them.
  ///   - table: What to do about each failure.
  ///   - maximumRetryAfter: The longest `Retry-After` that is waited for; one hour by default.
  public init(
    _ backOff: BackOff = .exponential(attempts: 5), table: FailureTable = .standard,
    maximumRetryAfter: Duration = .seconds(3600)
  ) {
    self.backOff = backOff
    self.table = table
    self.maximumRetryAfter = maximumRetryAfter
  }

  /// The number of attempts and the waits, as text.
  public var summary: String { backOff.description }

  /// Returns the action of the table's row, unless the attempts are used up or the server asks for too long a delay.
  public func decide(_ failure: Failure) -> RetryDecision {
    let row = table.row(for: failure.error)
    // A row's back-off counts failures of its kind; the policy's counts all.
    let (backOff, failures) = row.backOff.map { ($0, failure.repeated) } ?? (self.backOff, failure.consecutive)
    // A policy with a single attempt does not wait for resources either.
    if backOff.attempts > 1, failure.repeated < row.attempts ?? .max, let what = Self.awaited[row.action] {
      return .wait(for: what, atMost: Self.patience(what))
    }
    if row.action == .giveBack { return backOff.attempts > 1 ? .giveBack : .giveUp }
    guard failures < backOff.attempts, failure.repeated < row.attempts ?? .max,
      let wait = wait(after: failure, backOff.delay(afterFailures: failures, random: failure.random))
    else { return .giveUp }
    return switch row.action {
    case .resume: .resume(after: wait)
    case .restart: .restart(after: wait)
    // An expired link is not a failure of the server: the fresh link is used at once, unless it has failed as well.
    case .refresh: .refresh(after: failures == 1 && failure.error.retryAfter == nil ? .zero : wait)
    default: .giveUp
    }
  }

  private static let awaited: [FailureTable.Action: Awaited] = [
    .waitForNetwork: .network, .waitForDisk: .disk, .waitForOwner: .owner,
    .waitForDescriptors: .descriptors,
  ]

  /// Returns the time after which the download is tried again without a sign of the resource, because not every change
  /// can be observed.
  private static func patience(_ what: Awaited) -> Duration {
    switch what {
    case .descriptors: .seconds(1)
    case .owner: .seconds(5)
    case .network, .disk, .link: .seconds(30)
    }
  }

  /// Returns the wait; `nil` when the server asks for longer than ``maximumRetryAfter``.
  private func wait(after failure: Failure, _ delay: Duration) -> Duration? {
    guard let asked = failure.error.retryAfter?.delay(from: failure.now) else { return delay }
    return asked <= maximumRetryAfter ? asked + delay : nil
  }
}
