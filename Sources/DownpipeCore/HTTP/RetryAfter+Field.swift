internal import Foundation

extension RetryAfter {
  /// Parses a `Retry-After` field: a number of seconds or an HTTP date; `nil` for any other text.
  ///
  /// - Parameters:
  ///   - field: The field's value.
  ///   - sent: The `Date` field of the reply. With it, a date becomes the seconds from then on, because the clock of this
  ///     machine may be wrong.
  public init?(parsing field: String, sentAt sent: String? = nil) {
    let text = field.trimmingHTTPWhitespace
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that does not fit is treated as the largest one.
      self = .seconds(Int64(text) ?? .max)
    } else if let date = HTTPDate.date(from: text) {
      let seconds = sent.flatMap(HTTPDate.date(from:)).map { date.timeIntervalSince($0).rounded(.up) }
      self = seconds.flatMap { Int64(exactly: max(0, $0)) }.map(RetryAfter.seconds) ?? .date(date)
    } else {
      return nil
    }
  }
}
