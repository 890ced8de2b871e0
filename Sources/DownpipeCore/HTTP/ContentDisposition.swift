/// The content of a `Content-Disposition` field (RFC 6266), parsed tolerantly.
///
/// The name is only a suggestion and is not safe: it may contain path separators. ``SafeFileName`` makes it safe.
package struct ContentDisposition: Sendable, Hashable {
  /// The disposition type in lower case, such as `attachment` or `inline`; empty when it is missing.
  package let type: String
  /// The suggested name: `filename*` if it can be decoded, otherwise `filename`; `nil` when there is neither. Never
  /// empty.
  package let fileName: String?

  /// Parses a field value. Characters up to U+00FF stand for the octets that were sent.
  ///
  /// Names are decoded in this order: `filename*` with its charset (RFC 8187); an encoded word (RFC 2047), which some
  /// servers send although it is meant for mail; raw UTF-8; raw Latin-1. A percent-encoded `filename` is decoded only
  /// if the result is UTF-8 beyond ASCII, because a percent sign is legal there.
  package init(field: String) {
    var parser = Parser(field)
    var type = ""
    var plain: String?
    var extended: String?
    var isFirst = true
    while let part = parser.nextPart() {
      defer { isFirst = false }
      guard let value = part.value else {
        if isFirst { type = part.name }
        continue
      }
      switch part.name {
      case "filename":
        plain = plain ?? Self.decode(plain: value)
      case "filename*":
        if !part.isQuoted { extended = extended ?? Self.decode(extended: value) }
      default:
        break
      }
    }
    self.type = type
    fileName = (extended ?? plain).flatMap(Self.cleaned)
  }

  /// Removes surrounding blanks and the separators at the beginning of an absolute path.
  private static func cleaned(_ name: String) -> String? {
    let trimmed = name.trimmingHTTPWhitespace.drop { $0 == "/" || $0 == "\\" }
    return trimmed.isEmpty ? nil : String(trimmed)
  }

  // MARK: - Values

  private static func decode(plain octets: [UInt8]) -> String? {
    let raw = Charset.utf8.decode(octets) ?? Charset.latin1.decode(octets)
    guard let raw, !raw.isEmpty else { return nil }
    if raw.contains("=?") {
      if let words = EncodedWord.decode(raw) { return words }
      // A name that begins as an encoded word but is malformed would make no sense as a file name.
      if raw.hasPrefix("=?") { return nil }
    }
    if let bytes = PercentEncoding.decode(octets), bytes != octets, bytes.contains(where: { $0 >= 0x80 }),
      let name = Charset.utf8.decode(bytes)
    {
      return name
    }
    return raw
  }

  /// Decodes `charset'language'percent-encoded` (RFC 8187 §3.2).
  private static func decode(extended octets: [UInt8]) -> String? {
    let parts = octets.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[2].isEmpty, octets.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
      let charset = Charset(name: String(decoding: parts[0], as: UTF8.self)),
      let bytes = PercentEncoding.decode(Array(parts[2]))
    else { return nil }
    return charset.decode(bytes)
  }
}

extension ContentDisposition {
  /// Splits the field at its semicolons.
  private struct Parser {
    struct Part {
      var name: String
      var value: [UInt8]?
      var isQuoted = false
    }

    private let octets: [UInt8]
    private var position = 0

    init(_ field: String) {
      // Longer names are of no use, and the field comes from an untrusted server.
      let scalars = field.unicodeScalars.prefix(8192)
      octets =
        scalars.allSatisfy { $0.value <= 0xFF }
        ? scalars.map { UInt8($0.value) } : Array(String(String.UnicodeScalarView(scalars)).utf8)
    }

    private mutating func skipBlanks() {
      while position < octets.count, octets[position] == 0x20 || octets[position] == 0x09 { position += 1 }
    }

    private mutating func take(until stop: (UInt8) -> Bool) -> [UInt8] {
      let start = position
      while position < octets.count, !stop(octets[position]) { position += 1 }
      return Array(octets[start..<position])
    }

    mutating func nextPart() -> Part? {
      guard position < octets.count else { return nil }
      let semicolon = UInt8(ascii: ";")
      defer {
        _ = take { $0 == semicolon }
        position += 1
      }
      skipBlanks()
      let name = String(decoding: take { $0 == semicolon || $0 == UInt8(ascii: "=") }, as: UTF8.self)
        .trimmingHTTPWhitespace.lowercased()
      guard position < octets.count, octets[position] == UInt8(ascii: "=") else { return Part(name: name) }
      position += 1
      skipBlanks()
      guard position < octets.count, octets[position] == UInt8(ascii: "\"") else {
        let value = take { $0 == semicolon }
        let end = value.lastIndex { $0 != 0x20 && $0 != 0x09 }
        return Part(name: name, value: end.map { Array(value[...$0]) } ?? [])
      }
      position += 1
      return Part(name: name, value: takeQuoted(), isQuoted: true)
    }

    /// Reads the rest of a quoted string. A string without a closing mark ends with the field.
    ///
    /// Only `\"` and `\\` are unescaped: Windows servers send whole paths without escaping them.
    private mutating func takeQuoted() -> [UInt8] {
      var value: [UInt8] = []
      while position < octets.count, octets[position] != UInt8(ascii: "\"") {
        if octets[position] == UInt8(ascii: "\\"), position + 1 < octets.count,
          octets[position + 1] == UInt8(ascii: "\"") || octets[position + 1] == UInt8(ascii: "\\")
        {
          position += 1
        }
        value.append(octets[position])
        position += 1
      }
      // Skip the closing quotation mark, if there is one.
      position = min(position + 1, octets.count)
      return value
    }
  }
}
