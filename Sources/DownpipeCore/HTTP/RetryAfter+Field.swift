extension RetryAfter {
  /// Parses a `Retry-After` field: a number of seconds or an HTTP date; `nil` for any other text.
  public init?(parsing field: String) {
    let text = field.trimmingHTTPWhitespace
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that does not fit is treated as the largest one.
      self = .seconds(Int64(text) ?? .max)
    } else if let date = HTTPDate.date(from: text) {
      self = .date(date)
    } else {
      return nil
    }
  }
}
