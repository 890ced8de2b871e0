internal import Foundation

/// How long an HTTP reply is fresh in a private cache (RFC 9111 §4.2).
///
/// `no-store` and `no-cache`, also with names of fields, mean not at all; then `max-age` counts, then `Expires` less `Date`;
/// `Age` is subtracted. `s-maxage` is for shared caches. `must-revalidate`, `public`, `private` and `immutable` change
/// nothing: no stale file is used, and a fresh one is not asked about. Nothing is guessed from `Last-Modified`.
///
/// What is malformed or contradicts itself makes the reply less fresh, never more (§4.2.1). The clock of this device is
/// often wrong, so it is compared with nothing that the server says.
enum Freshness {
  /// Returns how long a reply is fresh; `nil` when its fields do not say.
  static func duration(in headers: HeaderFields) -> Duration? {
    var lifetime: Int64?
    for line in headers.values("Cache-Control") {
      switch cacheControl(line) {
      case .isStale: return .zero
      case .saysNothing: break
      case .maximumAge(let seconds): lifetime = min(lifetime ?? seconds, seconds)
      }
    }
    if lifetime == nil {
      let ends = headers.values("Expires")
      if ends.isEmpty { return nil }
      // Also “0” and “-1”, which many servers send for “expired” (§5.3).
      guard let sent = headers["Date"].flatMap(HTTPDate.date(from:)) else { return .zero }
      for text in ends {
        guard let end = HTTPDate.date(from: text) else { return .zero }
        let seconds = Int64(end.timeIntervalSince(sent))
        lifetime = min(lifetime ?? seconds, seconds)
      }
    }
    // Of a list, the first member counts; anything but a number is ignored (§5.1).
    let age = headers["Age"].flatMap { $0.split(separator: ",").first }.flatMap { seconds($0.utf8) } ?? 0
    return min(.seconds(max(0, (lifetime ?? 0) - age)), SourceReply.longestFreshness)
  }

  private enum CacheControl {
    case saysNothing, isStale
    case maximumAge(Int64)
  }

  /// Reads one field line of `Cache-Control`. Of several `max-age`, the shortest counts.
  private static func cacheControl(_ line: String) -> CacheControl {
    var shortest: Int64?
    var rest = line.utf8[...]
    while !rest.isEmpty {
      guard let directive = next(&rest) else { return .isStale }
      switch String(decoding: directive.name, as: UTF8.self).lowercased() {
      case "no-store", "no-cache":
        return .isStale
      case "max-age":
        guard let value = directive.value, let seconds = seconds(value) else { return .isStale }
        shortest = min(shortest ?? seconds, seconds)
      default: break
      }
    }
    return shortest.map { .maximumAge($0) } ?? .saysNothing
  }

  /// Takes the next directive from a list. A value may be a token or a quoted string (RFC 9111 §5.2).
  /// - Returns: `nil` if a quoted string does not end, so that it may hide a directive.
  private static func next(
    _ rest: inout Substring.UTF8View
  ) -> (name: Substring.UTF8View, value: Substring.UTF8View?)? {
    var (equals, end) = (rest.endIndex, rest.startIndex)
    var isQuoted = false
    while end < rest.endIndex {
      let byte = rest[end]
      if isQuoted {
        if byte == UInt8(ascii: "\\") {
          end = rest.index(after: end)
          if end == rest.endIndex { return nil }
        } else if byte == UInt8(ascii: "\"") {
          isQuoted = false
        }
      } else if byte == UInt8(ascii: "\"") {
        isQuoted = true
      } else if byte == UInt8(ascii: ",") {
        break
      } else if byte == UInt8(ascii: "="), equals == rest.endIndex {
        equals = end
      }
      end = rest.index(after: end)
    }
    if isQuoted { return nil }
    let name = trimmed(rest[..<min(equals, end)])
    let value = equals < end ? trimmed(rest[rest.index(after: equals)..<end]) : nil
    rest = end < rest.endIndex ? rest[rest.index(after: end)...] : rest[end...]
    return (name, value)
  }

  /// A number of seconds, also in quotation marks; `nil` for anything else. A number that is too large is 2³¹
  /// (RFC 9111 §1.2.2).
  private static func seconds(_ text: Substring.UTF8View) -> Int64? {
    var digits = trimmed(text)
    if digits.count >= 2, digits.first == UInt8(ascii: "\""), digits.last == UInt8(ascii: "\"") {
      digits = digits.dropFirst().dropLast()
    }
    guard !digits.isEmpty else { return nil }
    var number: Int64 = 0
    for byte in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      number = min(number * 10 + Int64(byte - UInt8(ascii: "0")), 1 << 31)
    }
    return number
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    var text = text
    while let first = text.first, isBlank(first) { text = text.dropFirst() }
    while let last = text.last, isBlank(last) { text = text.dropLast() }
    return text
  }
}
