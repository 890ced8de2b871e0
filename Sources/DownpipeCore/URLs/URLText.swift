package import Foundation

/// The parts of an absolute URL's text, as they are written (RFC 3986 §3).
///
/// Foundation decodes what it returns, and on Linux it returns an empty string for an escape that is not UTF-8, such as
/// `%E9`. Everything that is sent or compared is therefore taken from the text.
package struct URLText {
  /// The text. The parts are kept as offsets into its UTF-8: a substring of each part would cost a reference count.
  private let text: String
  private let schemeEnd: Int
  private let userStart: Int
  /// Equal to ``userStart`` when there is no user information; otherwise it follows the `@`.
  private let hostStart: Int
  /// -1 when the URL has no authority.
  private let hostEnd: Int
  private let pathStart: Int
  private let pathEnd: Int
  private let queryEnd: Int
  private let count: Int

  /// The scheme as written; empty when the text has none.
  package var scheme: Substring { part(0, schemeEnd) }
  /// The user information before the `@`; `nil` when there is none.
  package var userInfo: Substring? { hostStart > userStart ? part(userStart, hostStart - 1) : nil }
  /// The host as written, with the brackets of an IPv6 address; `nil` when the URL has no authority.
  package var host: Substring? { hostEnd < 0 ? nil : part(hostStart, hostEnd) }
  /// The digits after the host's colon; `nil` when there are none.
  package var portText: Substring? { hostEnd >= 0 && pathStart > hostEnd + 1 ? part(hostEnd + 1, pathStart) : nil }
  /// Whether the host is followed by a colon without digits.
  var hasEmptyPort: Bool { hostEnd >= 0 && pathStart == hostEnd + 1 }
  /// The path as written, which may be empty.
  package var path: Substring { part(pathStart, pathEnd) }
  /// The query as written, without `?`; `nil` when the URL has no query.
  package var query: Substring? { queryEnd > pathEnd ? part(pathEnd + 1, queryEnd) : nil }
  /// The fragment as written, without `#`; `nil` when the URL has no fragment.
  package var fragment: Substring? { count > queryEnd ? part(queryEnd + 1, count) : nil }

  package init(_ url: URL) { self.init(url.absoluteString) }

  package init(_ text: String) {
    var text = text
    (schemeEnd, userStart, hostStart, hostEnd, pathStart, pathEnd, queryEnd, count) = text.withUTF8(Self.split)
    self.text = text
  }

  private func part(_ start: Int, _ end: Int) -> Substring {
    let utf8 = text.utf8
    let first = utf8.index(utf8.startIndex, offsetBy: start)
    return text[first..<utf8.index(first, offsetBy: end - start)]
  }

  /// Finds the parts; their delimiters are ASCII.
  private static func split(_ text: UnsafeBufferPointer<UInt8>) -> (Int, Int, Int, Int, Int, Int, Int, Int) {
    let (slash, question, hash) = (UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"))
    let count = text.count
    /// The first place from `start` with one of the bytes, or the end.
    func find(_ start: Int, _ end: Int, _ one: UInt8, _ two: UInt8, _ three: UInt8) -> Int {
      var index = start
      while index < end, text[index] != one, text[index] != two, text[index] != three { index += 1 }
      return index
    }
    func find(_ byte: UInt8, _ start: Int, _ end: Int) -> Int { find(start, end, byte, byte, byte) }

    let colon = find(UInt8(ascii: ":"), 0, find(0, count, slash, question, hash))
    let hasScheme = colon < count && text[colon] == UInt8(ascii: ":")
    let schemeEnd = hasScheme ? colon : 0
    var start = hasScheme ? colon + 1 : 0
    var (userStart, hostStart, hostEnd) = (start, start, -1)
    if start + 1 < count, text[start] == slash, text[start + 1] == slash {
      start += 2
      let end = find(start, count, slash, question, hash)
      (userStart, hostStart) = (start, start)
      var bracket = -1
      for index in start..<end {
        // The last “@” counts. The colons of an IPv6 address are in brackets.
        if text[index] == UInt8(ascii: "@") { (hostStart, bracket) = (index + 1, -1) }
        if text[index] == UInt8(ascii: "]") { bracket = index }
      }
      hostEnd = find(UInt8(ascii: ":"), max(hostStart, bracket), end)
      start = end
    }
    let queryEnd = find(hash, start, count)
    return (schemeEnd, userStart, hostStart, hostEnd, start, find(question, start, queryEnd), queryEnd, count)
  }

  /// Whether the scheme is `http` or `https`.
  package var isHTTP: Bool { scheme.isHTTPScheme }

  /// Whether the scheme is `https`.
  package var isHTTPS: Bool { scheme.caseInsensitivelyEquals("https") }

  /// The host in lower case, with the port if there is one; empty without a host.
  var hostKey: String {
    guard let host else { return "" }
    if let written = hostAndPortInLowerCase { return written }
    return portText.flatMap { Int($0) }.map { "\(host.lowercased()):\($0)" } ?? host.lowercased()
  }

  /// The host and the port as they are written, if that is the ``hostKey``; otherwise `nil`.
  private var hostAndPortInLowerCase: String? {
    let written = text.utf8.withContiguousStorageIfAvailable { text -> String? in
      let hasPort = hostEnd < pathStart
      // Not an empty port, and not one with a zero before its digits.
      if hasPort, hostEnd + 1 == pathStart || text[hostEnd + 1] == UInt8(ascii: "0") { return nil }
      guard pathStart - hostEnd <= 6,
        text[hostStart..<hostEnd].allSatisfy({ $0 < 0x80 && !(0x41...0x5A).contains($0) }),
        text[min(hostEnd + 1, pathStart)..<pathStart].allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      return String(decoding: text[hostStart..<pathStart], as: UTF8.self)
    }
    return written ?? nil
  }

  /// The port as written, or that of the scheme; `nil` when neither is known.
  package var port: Int? { portText.map { Int($0) } ?? Self.defaultPort(of: scheme) }

  /// The port that a scheme uses when the URL has none.
  package static func defaultPort(of scheme: some StringProtocol) -> Int? {
    if scheme.caseInsensitivelyEquals("https") { return 443 }
    if scheme.caseInsensitivelyEquals("http") { return 80 }
    return switch scheme.lowercased() {
    case "ws": 80
    case "wss": 443
    case "ftp": 21
    case "ftps": 990
    case "sftp": 22
    default: nil
    }
  }
}

extension StringProtocol {
  /// Whether the text is ASCII without capital letters, so that it equals its lower-case form.
  var isLowerCaseASCII: Bool { utf8.allSatisfy { $0 < 0x80 && !(0x41...0x5A).contains($0) } }

  /// The text in lower case; the same storage when there is nothing to change.
  var inLowerCase: String { isLowerCaseASCII ? String(self) : lowercased() }
}
