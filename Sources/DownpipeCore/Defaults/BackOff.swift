/// How many times to try, and how long to wait between attempts.
///
/// ```swift
/// Retry(.exponential(attempts: 8, cap: .seconds(300)))
/// ```
public struct BackOff: Sendable, Hashable, CustomStringConvertible {
  private enum Growth: Sendable, Hashable {
    case exponential
    case constant
  }

  /// Attempts in a row without progress before it is over: at least 1, which means no retry. Progress gives them back.
  public let attempts: Int
  /// The upper bound of the first wait.
  public let base: Duration
  /// The upper bound of every wait.
  public let cap: Duration
  private let growth: Growth

  private init(attempts: Int, base: Duration, cap: Duration, growth: Growth) {
    self.attempts = max(1, attempts)
    self.base = min(max(.zero, base), Self.longest)
    self.cap = min(max(.zero, cap), Self.longest)
    self.growth = growth
  }

  /// Waits a random time between nothing and a bound that doubles with each failure ("full jitter"), so that
  /// many clients that failed together do not come back together.
  ///
  /// - Parameters:
  ///   - attempts: attempts in a row without progress, the first one included; fewer than 1 counts as 1.
  ///     `Int.max` never gives up.
  ///   - base: the bound of the first wait.
  ///   - cap: the bound of every wait. Times are cut to 0 … 365 days.
  public static func exponential(
    attempts: Int = 5, base: Duration = .seconds(1), cap: Duration = .seconds(60)
  ) -> BackOff {
    BackOff(attempts: attempts, base: base, cap: cap, growth: .exponential)
  }

  /// Always waits the same time, without jitter: for a single client and a server of one's own.
  ///
  /// - Parameters:
  ///   - interval: the wait, cut to 0 … 365 days.
  ///   - attempts: attempts in a row without progress, the first one included; fewer than 1 counts as 1.
  public static func constant(_ interval: Duration, attempts: Int = 5) -> BackOff {
    BackOff(attempts: attempts, base: interval, cap: interval, growth: .constant)
  }

  /// One attempt, no retry.
  public static var never: BackOff {
    BackOff(attempts: 1, base: .zero, cap: .zero, growth: .constant)
  }

  /// The longest a wait can be after so many failures in a row.
  public func bound(afterFailures consecutive: Int) -> Duration {
    guard growth == .exponential, base > .zero else { return min(base, cap) }
    var bound = min(base, cap)
    var failures = 1
    while failures < consecutive, bound < cap {
      bound = min(bound * 2, cap)
      failures += 1
    }
    return bound
  }

  /// The wait after so many failures in a row, for a random number from 0 up to 1.
  public func delay(afterFailures consecutive: Int, random: Double) -> Duration {
    let bound = bound(afterFailures: consecutive)
    guard growth == .exponential else { return bound }
    // NaN compares as false and becomes the whole bound.
    let share = random >= 0 && random < 1 ? random : 1
    return min(bound * share, bound)
  }

  /// `up to 5 attempts, waiting at most 1 s, doubling to 60 s`.
  public var description: String {
    if attempts == 1 { return "one attempt" }
    let count = attempts == .max ? "attempts without end" : "up to \(attempts) attempts"
    return switch growth {
    case .exponential: "\(count), waiting at most \(base.inWords), doubling to \(cap.inWords)"
    case .constant: "\(count), waiting \(base.inWords)"
    }
  }

  static let longest: Duration = .seconds(365 * 86_400)
}

extension Duration {
  /// The duration in seconds, as messages show it: `60 s`, `1.5 s`.
  package var inWords: String {
    let (seconds, attoseconds) = components
    guard attoseconds != 0 else { return "\(seconds) s" }
    // Milliseconds are enough for a message.
    let milliseconds = (Double(attoseconds) / 1e15).rounded() / 1000
    return "\(Double(seconds) + milliseconds) s"
  }
}
