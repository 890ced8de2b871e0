public import Foundation

/// The delay that a server asks for before the next request (RFC 9110 §10.2.3).
public enum RetryAfter: Sendable, Hashable, Codable {
  /// A number of seconds.
  case seconds(Int64)
  /// A date.
  case date(Date)

  /// Returns the delay from `now` on, which is neither negative nor longer than a year.
  public func delay(from now: Date) -> Duration {
    let year: Double = 365 * 86_400
    let seconds: Double =
      switch self {
      case .seconds(let seconds): Double(seconds)
      case .date(let date): date.timeIntervalSince(now)
      }
    return .seconds(min(max(0, seconds), year))
  }
}
