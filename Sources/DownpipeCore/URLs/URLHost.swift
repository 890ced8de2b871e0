internal import Foundation

/// The host of a URL: WHATWG's host parser, without what the source's resolver does itself.
///
/// Numbers such as `0x7f.1`, abbreviated IPv6 addresses and invalid Punycode are left to the source, which parses them
/// when it connects, and which must judge addresses there in any case.
enum URLHost {
  /// Returns a host in ASCII and in lower case, with the escapes decoded and names in other scripts as Punycode; `nil`
  /// for an empty host and for characters that are not allowed in hosts.
  static func ascii(_ text: Substring) -> String? {
    // Most hosts need no change.
    if !text.isEmpty, text.utf8.allSatisfy(isPlain) { return String(text) }
    return ascii(Array(text.utf8))
  }

  static func ascii(_ bytes: [UInt8]) -> String? {
    if bytes.first == UInt8(ascii: "[") { return address(bytes) }
    if !bytes.isEmpty, bytes.allSatisfy(isPlain) { return String(decoding: bytes, as: UTF8.self) }
    guard !bytes.isEmpty, let decoded = PercentEncoding.decode(bytes),
      let text = String(validating: decoded, as: UTF8.self)
    else {
      return nil
    }
    if decoded.allSatisfy({ $0 < 0x80 }) { return allowed(text) }
    // Foundation has the tables of UTS 46; it needs a URL to apply them.
    guard text.unicodeScalars.allSatisfy({ $0.value >= 0x80 || isAllowed(UInt8($0.value)) }),
      let host = URL(string: "https://\(text)/").flatMap({ URLText($0).host })
    else { return nil }
    return allowed(String(host))
  }

  private static func allowed(_ text: String) -> String? {
    text.utf8.allSatisfy(isAllowed) && !text.isEmpty ? text.lowercased() : nil
  }

  /// Whether a character of a host needs no change.
  static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "."), UInt8(ascii: "-"): true
    default: false
    }
  }

  /// Whether an ASCII character is allowed in hosts: RFC 3986's `reg-name` without escapes.
  private static func isAllowed(_ byte: UInt8) -> Bool {
    URLCharacters.isUnreserved(byte) || URLCharacters.isSubDelimiter(byte)
  }

  /// Returns an IPv6 address in brackets, with its zone (RFC 6874).
  private static func address(_ bytes: [UInt8]) -> String? {
    guard bytes.count > 3, bytes.last == UInt8(ascii: "]") else { return nil }
    let parts = bytes.dropFirst().dropLast().split(
      separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
    let address = String(decoding: parts[0], as: UTF8.self)
    guard
      parts[0].allSatisfy({ $0.hexDigitValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }),
      parts[0].contains(UInt8(ascii: ":"))
    else { return nil }
    guard parts.count == 2 else { return "[\(address.lowercased())]" }
    let zone = parts[1].starts(with: "25".utf8) && parts[1].count > 2 ? parts[1].dropFirst(2) : parts[1]
    guard !zone.isEmpty, zone.allSatisfy(URLCharacters.isUnreserved) else { return nil }
    return "[\(address.lowercased())%25\(String(decoding: zone, as: UTF8.self))]"
  }
}

/// The characters of RFC 3986 §2, and the encoding of all others.
enum URLCharacters {
  static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  static func isSubDelimiter(_ byte: UInt8) -> Bool { "!$&'()*+,;=".utf8.contains(byte) }

  /// Whether the character may be written in a path.
  static func isInPath(_ byte: UInt8) -> Bool {
    isUnreserved(byte) || isSubDelimiter(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "@")
      || byte == UInt8(ascii: "/")
  }

  /// Whether the character may be written in a query or a fragment.
  static func isInQuery(_ byte: UInt8) -> Bool { isInPath(byte) || byte == UInt8(ascii: "?") }

  /// Whether the character may be written in user information.
  static func isInUserInfo(_ byte: UInt8) -> Bool {
    isUnreserved(byte) || isSubDelimiter(byte) || byte == UInt8(ascii: ":")
  }

  /// Returns the text with the octets that are not allowed as escapes. An escape stays as it is written; a percent sign
  /// that does not begin one becomes `%25`.
  static func encode(_ bytes: some RandomAccessCollection<UInt8>, allowing isAllowed: (UInt8) -> Bool) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      let isEscape =
        byte == UInt8(ascii: "%") && bytes.distance(from: index, to: bytes.endIndex) > 2
        && bytes[bytes.index(index, offsetBy: 1)].hexDigitValue != nil
        && bytes[bytes.index(index, offsetBy: 2)].hexDigitValue != nil
      if isEscape || isAllowed(byte) {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
      }
      index = bytes.index(after: index)
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x41 + value - 10 }
}
