public import Foundation

/// Reads the expiry date of a signed link.
///
/// | parameter | used by | form |
/// |---|---|---|
/// | `X-Amz-Date` + `X-Amz-Expires` | AWS signature version 4 | `20260131T120000Z` and seconds, 604,800 at most |
/// | `X-Goog-Date` + `X-Goog-Expires` | Google Cloud Storage, version 4 | the same |
/// | `Expires` | AWS version 2, CloudFront, Google version 2, Alibaba | seconds since 1970 |
/// | `se` (beside `sig`) | Azure shared access signature | ISO 8601: `2026-01-31`, `2026-01-31T12:00Z`, `…T12:00:00Z` |
/// | `Policy` | CloudFront custom policy | base64 of JSON, with `-`, `_`, `~` for `+`, `=`, `/`; `DateLessThan` |
///
/// Names are compared without regard to case. A parameter that cannot be read is ignored. The earliest of several dates
/// counts.
public enum LinkExpiry {
  /// Returns the expiry date of a link; `nil` when the link has none.
  public static func date(of url: URL) -> Date? {
    guard let query = url.query(percentEncoded: true), query.utf8.count <= 16_384,
      let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems
    else { return nil }
    var values: [String: String] = [:]
    for item in items {
      guard let value = item.value, !value.isEmpty else { continue }
      let name = item.name.lowercased()
      // The first value counts. If the server uses a later one, its reply will show it.
      if values[name] == nil { values[name] = value }
    }
    return [
      signed(values["x-amz-date"], values["x-amz-expires"]), signed(values["x-goog-date"], values["x-goog-expires"]),
      values["expires"].flatMap(unixTime), values["sig"] == nil ? nil : values["se"].flatMap(iso8601),
      values["policy"].flatMap(policy),
    ].compactMap(\.self).min()
  }

  /// Returns the date for a signing date and a number of seconds.
  private static func signed(_ date: String?, _ seconds: String?) -> Date? {
    guard let date, let seconds, let seconds = Int(seconds), (0...31_622_400).contains(seconds) else { return nil }
    let digits = Array(date.utf8)
    guard digits.count == 16, digits[8] == UInt8(ascii: "T"), digits[15] == UInt8(ascii: "Z") else { return nil }
    // Work on bytes: a malformed date may have fewer characters than bytes.
    func part(_ range: Range<Int>) -> String { String(decoding: digits[range], as: UTF8.self) }
    return iso8601(
      "\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(9..<11)):\(part(11..<13)):\(part(13..<15))Z")?
      .addingTimeInterval(TimeInterval(seconds))
  }

  /// Parses seconds since 1970 from 2001 to 2286. The range excludes lifetimes in seconds and times in milliseconds.
  private static func unixTime(_ text: String) -> Date? {
    guard let seconds = Int64(text), (1_000_000_000...9_999_999_999).contains(seconds) else { return nil }
    return Date(timeIntervalSince1970: TimeInterval(seconds))
  }

  private static func iso8601(_ text: String) -> Date? {
    guard text.utf8.count <= 40 else { return nil }
    if text.utf8.count == 10 { return try? Date.ISO8601FormatStyle().year().month().day().parse(text) }
    for form in [Date.ISO8601FormatStyle.iso8601, Date.ISO8601FormatStyle(includingFractionalSeconds: true)] {
      if let date = try? form.parse(text) { return date }
    }
    // Azure allows times without seconds: 2026-01-31T12:00Z.
    let parts = text.split(separator: "T", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].hasSuffix("Z"), parts[1].count == 6 else { return nil }
    return try? Date.ISO8601FormatStyle.iso8601.parse("\(parts[0])T\(parts[1].dropLast()):00Z")
  }

  /// Parses CloudFront's variant of base64, and returns the earliest `DateLessThan` condition of the policy.
  private static func policy(_ text: String) -> Date? {
    let base64 = String(
      text.map { character in
        switch character {
        case "-": "+"
        case "_": "="
        case "~": "/"
        default: character
        }
      })
    guard let data = Data(base64Encoded: base64), let policy = try? JSONDecoder().decode(Policy.self, from: data)
    else { return nil }
    return policy.statements.compactMap(\.condition?.end?.seconds).min().map(Date.init(timeIntervalSince1970:))
  }

  private struct Policy: Decodable {
    var statements: [Statement]
    enum CodingKeys: String, CodingKey { case statements = "Statement" }

    struct Statement: Decodable {
      var condition: Condition?
      enum CodingKeys: String, CodingKey { case condition = "Condition" }
    }
    struct Condition: Decodable {
      var end: Time?
      enum CodingKeys: String, CodingKey { case end = "DateLessThan" }
    }
    struct Time: Decodable {
      var seconds: TimeInterval
      enum CodingKeys: String, CodingKey { case seconds = "AWS:EpochTime" }
    }
  }
}
