public import Foundation

/// How long a server asked to be left alone (RFC 9110 §10.2.3).
public enum RetryAfter: Sendable, Hashable, Codable {
  /// For so many seconds.
  case seconds(Int64)
  /// Until a time.
  case date(Date)

  /// The wait from `now` on; never negative, and a year at most.
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
