/// The number of attempts, and the waits between them.
///
/// ```swift
/// Retry(.exponential(attempts: 8, cap: .seconds(300)))
/// ```
public struct BackOff: Sendable, Hashable, CustomStringConvertible {
  private enum Growth: Sendable, Hashable {
    case exponential
    case constant
  }

  /// The number of attempts in a row without progress, at least 1, which means no retry. Progress resets the count.
  public let attempts: Int
  /// The upper bound of the first wait.
  public let base: Duration
  /// The upper bound of all waits.
  public let cap: Duration
  private let growth: Growth

  private init(attempts: Int, base: Duration, cap: Duration, growth: Growth) {
    self.attempts = max(1, attempts)
    self.base = min(max(.zero, base), Self.longest)
    self.cap = min(max(.zero, cap), Self.longest)
    self.growth = growth
  }

  /// Returns a back-off with random waits between zero and a bound that doubles with each failure ("full jitter").
  ///
  /// Jitter prevents clients that failed together from retrying together.
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts in a row without progress, including the first one. Numbers below 1 count as
  ///     1; `Int.max` means no limit.
  ///   - base: The bound of the first wait, limited to 0 … 365 days.
  ///   - cap: The bound of all waits, limited to 0 … 365 days.
  public static func exponential(
    attempts: Int = 5, base: Duration = .seconds(1), cap: Duration = .seconds(60)
  ) -> BackOff {
    BackOff(attempts: attempts, base: base, cap: cap, growth: .exponential)
  }

  /// Returns a back-off with waits of equal length and without jitter. It suits a single client of your own server.
  ///
  /// - Parameters:
  ///   - interval: The wait, limited to 0 … 365 days.
  ///   - attempts: The number of attempts in a row without progress, including the first one. Numbers below 1 count as
  ///     1.
  public static func constant(_ interval: Duration, attempts: Int = 5) -> BackOff {
    BackOff(attempts: attempts, base: interval, cap: interval, growth: .constant)
  }

  /// A back-off with one attempt and no retry, which does not wait for missing resources either.
  public static var never: BackOff {
    BackOff(attempts: 1, base: .zero, cap: .zero, growth: .constant)
  }

  /// Returns the same back-off with another number of attempts.
  ///
  /// - Parameter attempts: The number of attempts in a row without progress, including the first one. Numbers below 1 count
  ///   as 1; `Int.max` means no limit.
  public func with(attempts: Int) -> BackOff { BackOff(attempts: attempts, base: base, cap: cap, growth: growth) }

  /// Returns the longest possible wait after a number of failures in a row.
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

  /// Returns the wait after a number of failures in a row, for a random number in 0..<1.
  public func delay(afterFailures consecutive: Int, random: Double) -> Duration {
    let bound = bound(afterFailures: consecutive)
    guard growth == .exponential else { return bound }
    // NaN compares as false and gives the whole bound.
    let share = random >= 0 && random < 1 ? random : 1
    return min(bound * share, bound)
  }

  /// The back-off as text, such as `up to 5 attempts, waiting at most 1 s, doubling to 60 s`.
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
  /// The duration in seconds for messages, such as `60 s` or `1.5 s`.
  package var inWords: String {
    let (seconds, attoseconds) = components
    guard attoseconds != 0 else { return "\(seconds) s" }
    // Milliseconds are precise enough for a message.
    let milliseconds = (Double(attoseconds) / 1e15).rounded() / 1000
    return "\(Double(seconds) + milliseconds) s"
  }
}
