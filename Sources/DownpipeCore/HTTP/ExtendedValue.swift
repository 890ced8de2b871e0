/// An extended value, `charset'language'percent-encoded` (RFC 8187 §3.2).
struct ExtendedValue {
  let text: String

  private static let apostrophe = UInt8(ascii: "'")

  /// Decodes a value; `nil` when it is malformed, of an unknown charset or empty.
  ///
  /// Blanks are accepted, because Chromium accepts them.
  init?(_ octets: [UInt8]) {
    let parts = octets.split(separator: Self.apostrophe, omittingEmptySubsequences: false)
    guard parts.count == 3, Self.isPrintable(octets), let charset = Charset(octets: parts[0]),
      let bytes = PercentEncoding.decode(Array(parts[2])), !bytes.isEmpty, let text = charset.decode(bytes)
    else { return nil }
    self.text = text
  }

  /// Decodes a value whose charset and language may be missing, or only the language with its mark, or whose charset may
  /// be unknown, as Firefox does. Such a value must be UTF-8.
  init?(forgiving octets: [UInt8]) {
    let parts = octets.split(separator: Self.apostrophe, omittingEmptySubsequences: false)
    guard (1...3).contains(parts.count), Self.isPrintable(octets), let value = parts.last,
      let bytes = PercentEncoding.decode(Array(value)), !bytes.isEmpty
    else { return nil }
    let charset = parts.count > 1 ? Charset(octets: parts[0]) : .utf8
    // Without a charset, a single apostrophe may be a part of the name.
    guard charset != nil || parts.count == 3, let text = (charset ?? .utf8).decode(bytes) else { return nil }
    self.text = text
  }

  fileprivate static func isPrintable(_ octets: [UInt8]) -> Bool { octets.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }
}

extension Charset {
  fileprivate init?(octets: ArraySlice<UInt8>) { self.init(name: String(decoding: octets, as: UTF8.self)) }
}

/// A name in several parameters, `filename*0*=UTF-8''a%20; filename*1="b"` (RFC 2231 §3).
///
/// As in Firefox, the parts are joined in the order of their numbers up to the first gap, and a number that occurs twice
/// ends the name.
struct NameContinuation {
  private var parts: [Int: [UInt8]] = [:]
  private var charset: Charset?
  private var hasEnded = false

  /// Adds a part. `number` is the end of the parameter's name, such as `0*` for `filename*0*`.
  mutating func add(_ value: [UInt8], numbered number: Substring, isQuoted: Bool) {
    guard !hasEnded else { return }
    let isEncoded = number.hasSuffix("*")
    let digits = isEncoded ? number.dropLast() : number
    guard (1...3).contains(digits.utf8.count), digits == "0" || !digits.hasPrefix("0"),
      digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let index = Int(digits)
    else { return }
    if parts[index] != nil {
      hasEnded = true
      return
    }
    guard isQuoted || !value.contains(where: { $0 == 0x20 || $0 == 0x09 }) else { return }
    parts[index] = isEncoded ? decode(value, isFirst: index == 0) : value
  }

  /// Decodes an encoded part; the first one names the charset. Returns `nil` for a malformed part, which is a gap.
  private mutating func decode(_ value: [UInt8], isFirst: Bool) -> [UInt8]? {
    guard isFirst else { return PercentEncoding.decode(value) }
    let pieces = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard pieces.count == 3, let charset = Charset(octets: pieces[0]) else { return nil }
    self.charset = charset
    return PercentEncoding.decode(Array(pieces[2]))
  }

  /// The name; `nil` when there is no first part, or when its bytes are not of its charset.
  var text: String? {
    var octets: [UInt8] = []
    var index = 0
    while let part = parts[index] {
      octets += part
      index += 1
    }
    guard !octets.isEmpty else { return nil }
    return charset.map { $0.decode(octets) } ?? (Charset.utf8.decode(octets) ?? Charset.latin1.decode(octets))
  }
}
