package import Foundation

/// The parts of an absolute URL's text, as they are written (RFC 3986 §3).
///
/// Foundation decodes what it returns, and on Linux it returns an empty string for an escape that is not UTF-8, such as
/// `%E9`. Everything that is sent or compared is therefore taken from the text.
package struct URLText {
  /// The scheme as written; empty when the text has none.
  package let scheme: Substring
  /// The user information before the `@`; `nil` when there is none.
  package let userInfo: Substring?
  /// The host as written, with the brackets of an IPv6 address; `nil` when the URL has no authority.
  package let host: Substring?
  /// The digits after the host's colon; `nil` when there are none.
  package let portText: Substring?
  /// The path as written, which may be empty.
  package let path: Substring
  /// The query as written, without `?`; `nil` when the URL has no query.
  package let query: Substring?
  /// The fragment as written, without `#`; `nil` when the URL has no fragment.
  package let fragment: Substring?

  package init(_ url: URL) { self.init(url.absoluteString) }

  package init(_ text: String) {
    let utf8 = text.utf8
    let isEnd: (UInt8) -> Bool = { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
    var start = utf8.startIndex
    if let colon = utf8.firstIndex(where: { $0 == UInt8(ascii: ":") || isEnd($0) }), utf8[colon] == UInt8(ascii: ":") {
      scheme = text[..<colon]
      start = utf8.index(after: colon)
    } else {
      scheme = text[..<start]
    }
    if utf8[start...].starts(with: "//".utf8) {
      start = utf8.index(start, offsetBy: 2)
      let end = utf8[start...].firstIndex(where: isEnd) ?? utf8.endIndex
      let mark = utf8[start..<end].lastIndex(of: UInt8(ascii: "@"))
      userInfo = mark.map { text[start..<$0] }
      if let mark { start = utf8.index(after: mark) }
      // The colons of an IPv6 address are in brackets.
      let bracket = utf8[start..<end].lastIndex(of: UInt8(ascii: "]")) ?? start
      let colon = utf8[bracket..<end].firstIndex(of: UInt8(ascii: ":"))
      host = text[start..<(colon ?? end)]
      let digits = colon.map { text[utf8.index(after: $0)..<end] }
      portText = digits?.isEmpty ?? true ? nil : digits
      start = end
    } else {
      (userInfo, host, portText) = (nil, nil, nil)
    }
    let hash = utf8[start...].firstIndex(of: UInt8(ascii: "#"))
    let mark = utf8[start..<(hash ?? utf8.endIndex)].firstIndex(of: UInt8(ascii: "?"))
    path = text[start..<(mark ?? hash ?? utf8.endIndex)]
    query = mark.map { text[utf8.index(after: $0)..<(hash ?? utf8.endIndex)] }
    fragment = hash.map { text[utf8.index(after: $0)...] }
  }

  /// Whether the scheme is `http` or `https`.
  package var isHTTP: Bool { scheme.isHTTPScheme }

  /// Whether the scheme is `https`.
  package var isHTTPS: Bool { scheme.caseInsensitivelyEquals("https") }

  /// The host in lower case, with the port if there is one; empty without a host.
  var hostKey: String {
    let host = host?.lowercased() ?? ""
    return portText.flatMap { Int($0) }.map { "\(host):\($0)" } ?? host
  }

  /// The port as written, or that of the scheme; `nil` when neither is known.
  package var port: Int? { portText.map { Int($0) } ?? Self.defaultPort(of: scheme) }

  /// The port that a scheme uses when the URL has none.
  package static func defaultPort(of scheme: some StringProtocol) -> Int? {
    switch scheme.lowercased() {
    case "http", "ws": 80
    case "https", "wss": 443
    case "ftp": 21
    default: nil
    }
  }
}
