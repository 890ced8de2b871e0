public import Foundation

/// How long a server asked to be left alone (RFC 9110 §10.2.3).
public enum RetryAfter: Sendable, Hashable, Codable {
  /// For so many seconds.
  case seconds(Int64)
  /// Until a time.
  case date(Date)

  /// Parses a field value: a number of seconds or an HTTP date.
  public init?(field: String) {
    let text = field.trimmingHTTPWhitespace
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // More than fits is "very long".
      self = .seconds(Int64(text) ?? .max)
    } else if let date = HTTPDate.date(from: text) {
      self = .date(date)
    } else {
      return nil
    }
  }

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
