extension RetryAfter {
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
}
