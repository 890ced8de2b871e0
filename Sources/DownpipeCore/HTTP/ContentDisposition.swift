/// The content of a `Content-Disposition` field (RFC 6266), parsed as browsers parse it.
///
/// The name is only a suggestion and is not safe: it may contain path separators. ``SafeFileName`` makes it safe.
package struct ContentDisposition: Sendable, Hashable {
  /// The disposition type in lower case, such as `attachment` or `inline`; empty when it is missing.
  package let type: String
  /// The suggested name; `nil` when there is none that can be decoded. Never empty.
  package let fileName: String?

  /// Parses a field value. Characters up to U+00FF stand for the octets that were sent.
  ///
  /// The name is the first of these that yields one. Of several parameters with the same name the first counts.
  /// 1. `filename*` as RFC 8187 defines it.
  /// 2. The continuations `filename*0`, `filename*1*` … (RFC 2231 §3), which the standard for HTTP leaves out but
  ///    programs for mail send.
  /// 3. `filename`: an encoded word (RFC 2047), which some servers send although it is meant for mail; percent-encoded
  ///    UTF-8; raw UTF-8; raw Latin-1. Chromium decodes all of them.
  /// 4. A malformed `filename*`, as Firefox forgives it: in quotation marks, or without its charset.
  package init(parsing field: String) {
    var parser = Parser(field)
    var type = ""
    var plain: String?
    var extended: String?
    var forgiven: String?
    var continuation = NameContinuation()
    var isFirst = true
    while let part = parser.nextPart() {
      defer { isFirst = false }
      guard let value = part.value else {
        if isFirst, !part.isQuoted { type = part.name }
        continue
      }
      switch part.name {
      case "filename":
        plain = plain ?? Self.decode(plain: value)
      case "filename*":
        if !part.isQuoted { extended = extended ?? ExtendedValue(value)?.text }
        forgiven = forgiven ?? ExtendedValue(forgiving: value)?.text
      default:
        if part.name.hasPrefix("filename*") {
          continuation.add(value, numbered: part.name.dropFirst(9), isQuoted: part.isQuoted)
        }
      }
    }
    self.type = type
    fileName =
      extended.flatMap(Self.cleaned) ?? continuation.text.flatMap(Self.cleaned) ?? plain.flatMap(Self.cleaned)
      ?? forgiven.flatMap(Self.cleaned)
  }

  /// Removes surrounding blanks and the separators at the beginning of an absolute path.
  private static func cleaned(_ name: String) -> String? {
    let trimmed = name.trimmingHTTPWhitespace.drop { $0 == "/" || $0 == "\\" }
    return trimmed.isEmpty ? nil : String(trimmed)
  }

  /// Decodes the value of `filename`, word by word.
  ///
  /// The blanks after an encoded word are removed, as browsers do; other blanks stay.
  /// - Returns: `nil` for a malformed encoded word: it makes no sense as a file name.
  private static func decode(plain octets: [UInt8]) -> String? {
    var name = ""
    var followsEncodedWord = false
    var rest = octets[...]
    while let first = rest.first {
      if isBlank(first) {
        if !followsEncodedWord { name.append(" ") }
        rest.removeFirst()
        continue
      }
      let word = Array(rest.prefix { !isBlank($0) })
      rest.removeFirst(word.count)
      followsEncodedWord = word.starts(with: "=?".utf8)
      guard let text = followsEncodedWord ? EncodedWord.decode(word) : decode(word: word) else { return nil }
      name += text
    }
    return name.isEmpty ? nil : name
  }

  /// Decodes a word that is not an encoded word. Percent signs that are no escapes of UTF-8 stay, as in `50%.html`.
  private static func decode(word: [UInt8]) -> String? {
    if word.contains(UInt8(ascii: "%")), let bytes = PercentEncoding.decode(word), let text = Charset.utf8.decode(bytes)
    {
      return text
    }
    return Charset.utf8.decode(word) ?? Charset.latin1.decode(word)
  }

  private static func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 }
}
