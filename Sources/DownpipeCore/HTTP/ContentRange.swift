/// The content of a `Content-Range` field (RFC 9110 §14.4). Only the unit `bytes` is supported.
package enum ContentRange: Sendable, Hashable {
  /// The content is this part of the representation, whose length may be unknown (`bytes 0-9/*`).
  case part(ByteRange, total: ByteCount)
  /// The range could not be served (`bytes */1234`, with status 416).
  case unsatisfied(total: Int64)

  /// Parses a field value; `nil` when it is malformed.
  ///
  /// Blanks around the parts are tolerated, because servers send them. Contradictory values are malformed: a last byte
  /// before the first one, a last byte at or after the total, numbers beyond 63 bits.
  package init?(parsing field: String) {
    let text = field.trimmingHTTPWhitespace
    // The unit ends at a space; a tab alone does not separate it.
    guard text.utf8.count <= 256, let space = text.firstIndex(of: " "),
      text[..<space].trimmingHTTPWhitespace.caseInsensitivelyEquals("bytes")
    else { return nil }
    let halves = text[space...].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let positions = halves[0].trimmingHTTPWhitespace
    let size = halves[1].trimmingHTTPWhitespace

    if positions == "*" {
      guard let total = Int64(decimalDigits: size) else { return nil }
      self = .unsatisfied(total: total)
      return
    }
    let ends = positions.split(separator: "-", omittingEmptySubsequences: false)
    // The offset after the last byte must also fit into 63 bits.
    guard ends.count == 2,
      let first = Int64(decimalDigits: ends[0].trimmingHTTPWhitespace),
      let last = Int64(decimalDigits: ends[1].trimmingHTTPWhitespace),
      first <= last, last < .max
    else { return nil }
    if size == "*" {
      self = .part(first..<(last + 1), total: .unknown)
    } else if let total = Int64(decimalDigits: size), last < total {
      self = .part(first..<(last + 1), total: .known(total))
    } else {
      return nil
    }
  }
}

extension Int64 {
  /// Parses `1*DIGIT` without sign and blanks; `nil` for any other text and for more than 63 bits.
  package init?(decimalDigits text: some StringProtocol) { self.init(decimalDigits: text.utf8) }

  /// Parses ASCII `1*DIGIT` without sign and blanks; `nil` for any other text and for more than 63 bits.
  package init?(decimalDigits text: some Collection<UInt8>) {
    guard !text.isEmpty else { return nil }
    self = 0
    for digit in text {
      guard (0x30...0x39).contains(digit) else { return nil }
      let (tens, isTooMuch) = multipliedReportingOverflow(by: 10)
      let (sum, isOneTooMuch) = tens.addingReportingOverflow(Int64(digit - 0x30))
      guard !isTooMuch, !isOneTooMuch else { return nil }
      self = sum
    }
  }
}
