package import Foundation

/// The one place that turns text into a URL, and a URL into what is sent.
///
/// The rules for `http` and `https` are those of WHATWG's URL standard, as browsers and curl apply them. An escape stays
/// as it is written, because a server may tell `%E9` from `é` and `%2F` from `/`. The only exceptions are path segments
/// that stand for `.` and `..`, such as `%2e%2e`, which are resolved by the standard. What cannot be sent is encoded
/// once: blanks, control characters, `"<>\^`{|}`, brackets, a `%` that begins no escape, and all that is not ASCII.
///
/// | differs from WHATWG | why |
/// |---|---|
/// | `[ ] \| ^ \` in path and query, and `%` without two digits, are encoded | Foundation's `URL` cannot hold them |
/// | `'` in a query is not encoded | it may be sent, and a signature may cover it |
/// | no rewriting of IP addresses such as `0x7f.1`, nor of invalid Punycode | the source does it when it connects |
/// | a zone of an IPv6 address is kept | link-local addresses need it |
/// | schemes other than `http` and `https` are not normalized | a source for them has rules of its own |
package enum HTTPURL {
  /// Returns the URL for text as a person or a list writes it; `nil` when the text is not an absolute URL.
  package static func parse(_ text: String) -> URL? {
    // Foundation checks the same characters; almost every URL of a long list takes this way.
    if let parts = canonicalParts(text), parts.isHTTP { return URL(string: text, encodingInvalidCharacters: false) }
    return reference(Array(text.utf8), base: nil)
  }

  /// Returns the URL of a `Location` field against the URL that was requested, without fragment; `nil` when there is
  /// none.
  ///
  /// - Parameter location: One character an octet (Latin-1): octets from 0x80 become escapes of these octets. If it has
  ///   characters above 0xFF, it was decoded as UTF-8, and is encoded as UTF-8.
  package static func resolve(_ location: String, against url: URL) -> URL? {
    let base = URLText(url)
    guard base.isHTTP, base.host?.isEmpty == false else { return nil }
    let isLatin1 = location.unicodeScalars.allSatisfy { $0.value <= 0xFF }
    let bytes = isLatin1 ? location.unicodeScalars.map { UInt8($0.value) } : Array(location.utf8)
    return reference(bytes[..<(bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex)], base: base)
  }

  /// Returns the URL that is requested: scheme, host, port, path and query as written, without user information and
  /// fragment.
  package static func wireText(_ url: URL) -> String {
    let parts = URLText(url)
    let port = parts.portText.map { ":\($0)" } ?? ""
    return "\(parts.scheme.inLowerCase)://\(parts.host ?? "")\(port)\(target(parts))"
  }

  /// Returns the request target (RFC 9112 §3.2.1): path and query as written, at least `/`.
  package static func target(_ url: URL) -> String { target(URLText(url)) }

  private static func target(_ parts: URLText) -> String {
    let path = parts.path.isEmpty ? "/" : parts.path
    return parts.query.map { "\(path)?\($0)" } ?? String(path)
  }

  // MARK: Parsing

  /// The parts of a text that is a URL in its normal form; `nil` when it may need a change.
  private static func canonicalParts(_ text: String) -> URLText? {
    guard text.utf8.allSatisfy({ URLCharacters.isInQuery($0) || $0 == UInt8(ascii: "#") }) else { return nil }
    let parts = URLText(text)
    let scheme = parts.scheme
    guard parts.userInfo == nil, let host = parts.host, !host.isEmpty, host.utf8.allSatisfy(URLHost.isPlain),
      scheme == "http" || scheme == "https", !parts.hasEmptyPort,
      parts.portText.map({ isCanonical(port: $0, of: scheme) }) ?? true, isCanonical(path: parts.path),
      parts.fragment?.contains("#") != true
    else { return nil }
    return parts
  }

  /// Whether the path begins with a slash, and none of its segments begins with a dot.
  private static func isCanonical(path: Substring) -> Bool {
    guard path.utf8.first == UInt8(ascii: "/") else { return false }
    var last: UInt8 = 0
    for byte in path.utf8 {
      if byte == UInt8(ascii: "."), last == UInt8(ascii: "/") { return false }
      last = byte
    }
    return true
  }

  /// Whether a port is written in its shortest form and is not that of the scheme.
  private static func isCanonical(port digits: Substring, of scheme: Substring) -> Bool {
    guard digits.utf8.first != UInt8(ascii: "0"), let port = Int64(decimalDigits: digits), port <= 65_535
    else { return false }
    return port != URLText.defaultPort(of: scheme).map(Int64.init)
  }

  /// Parses an absolute URL, or a reference against a base (WHATWG's basic URL parser).
  private static func reference(_ text: some Collection<UInt8>, base: URLText?) -> URL? {
    let trimmed = Array(text).trimming { $0 <= 0x20 }.filter { $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    guard let (scheme, rest) = scheme(of: trimmed) else {
      return base.flatMap { relative(trimmed[...], to: $0) }
    }
    guard scheme == "http" || scheme == "https" else { return other(scheme, rest) }
    if let base, base.scheme.caseInsensitivelyEquals(scheme) { return relative(rest, to: base) }
    return absolute(scheme, rest.drop(while: isSlash))
  }

  private static func scheme(of text: [UInt8]) -> (String, ArraySlice<UInt8>)? {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), let first = text.first else { return nil }
    let scheme = text[..<colon]
    let isLetter = (0x61...0x7A).contains(first | 0x20)
    guard isLetter, scheme.allSatisfy({ URLCharacters.isUnreserved($0) && $0 != 0x5F && $0 != 0x7E || $0 == 0x2B })
    else { return nil }
    return (String(decoding: scheme, as: UTF8.self).lowercased(), text[(colon + 1)...])
  }

  private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }

  private static func relative(_ rest: ArraySlice<UInt8>, to base: URLText) -> URL? {
    let scheme = base.scheme.lowercased()
    if rest.prefix(2).count(where: isSlash) == 2 { return absolute(scheme, rest.drop(while: isSlash)) }
    let tail = Tail(rest)
    var path = tail.path
    var query = tail.query
    let basePath = Array(base.path.utf8)
    if path.isEmpty {
      path = basePath[...]
      query = query ?? base.query.map { Array($0.utf8)[...] }
    } else if !isSlash(path[path.startIndex]) {
      let folder = basePath.lastIndex(of: UInt8(ascii: "/")).map { basePath[...$0] } ?? [UInt8(ascii: "/")]
      path = folder + path
    }
    guard let host = base.host.flatMap({ URLHost.ascii(Array($0.utf8)) }) else { return nil }
    let port = base.portText.map { ":\($0)" } ?? ""
    return url("\(scheme)://\(host)\(port)", Tail(path: path, query: query, fragment: tail.fragment))
  }

  private static func absolute(_ scheme: String, _ rest: ArraySlice<UInt8>) -> URL? {
    let end = rest.firstIndex { isSlash($0) || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
    guard let authority = Authority(rest[..<end], scheme: scheme) else { return nil }
    return url("\(scheme)://\(authority.text)", Tail(rest[end...]))
  }

  private static func url(_ start: String, _ tail: Tail) -> URL? {
    let path = removingDotSegments(tail.path.map { isSlash($0) ? UInt8(ascii: "/") : $0 })
    var text = start + URLCharacters.encode(path, allowing: URLCharacters.isInPath)
    text += tail.queryAndFragment
    return URL(string: text, encodingInvalidCharacters: false)
  }

  /// Returns the URL of another scheme: only what Foundation cannot hold is encoded.
  private static func other(_ scheme: String, _ rest: ArraySlice<UInt8>) -> URL? {
    var start = "\(scheme):"
    var rest = rest
    if rest.starts(with: "//".utf8) {
      rest = rest.dropFirst(2)
      let slash = UInt8(ascii: "/")
      let end = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
      guard end == rest.startIndex || Authority(rest[..<end], scheme: scheme) != nil else { return nil }
      start += "//" + (Authority(rest[..<end], scheme: scheme)?.text ?? "")
      rest = rest[end...]
    }
    let tail = Tail(rest)
    return URL(
      string: start + URLCharacters.encode(tail.path, allowing: URLCharacters.isInPath) + tail.queryAndFragment,
      encodingInvalidCharacters: false)
  }

  /// Resolves the segments `.` and `..` of an absolute path, also when their dots are written as `%2e`; the result
  /// begins with a slash.
  static func removingDotSegments(_ path: [UInt8]) -> [UInt8] {
    let slash = UInt8(ascii: "/")
    let segments = (path.first == slash ? path[1...] : path[...]).split(
      separator: slash, omittingEmptySubsequences: false)
    var kept: [ArraySlice<UInt8>] = []
    for (index, segment) in segments.enumerated() {
      let dots = dots(segment)
      if dots == 2 { _ = kept.popLast() }
      if dots == nil { kept.append(segment) } else if index == segments.count - 1 { kept.append([]) }
    }
    return kept.isEmpty ? [slash] : kept.flatMap { [slash] + $0 }
  }

  /// The number of dots that a segment consists of, 1 or 2.
  private static func dots(_ segment: ArraySlice<UInt8>) -> Int? {
    guard (1...6).contains(segment.count) else { return nil }
    var rest = segment
    var count = 0
    while let first = rest.first {
      if first == UInt8(ascii: ".") {
        rest = rest.dropFirst()
      } else if rest.starts(with: "%2e".utf8) || rest.starts(with: "%2E".utf8) {
        rest = rest.dropFirst(3)
      } else {
        return nil
      }
      count += 1
    }
    return count <= 2 ? count : nil
  }
}

/// What follows the authority of a URL.
private struct Tail {
  var path: ArraySlice<UInt8>
  var query: ArraySlice<UInt8>?
  var fragment: ArraySlice<UInt8>?

  init(path: ArraySlice<UInt8>, query: ArraySlice<UInt8>?, fragment: ArraySlice<UInt8>?) {
    self.path = path
    self.query = query
    self.fragment = fragment
  }

  init(_ text: ArraySlice<UInt8>) {
    let hash = text.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
    let mark = text[..<hash].firstIndex(of: UInt8(ascii: "?")) ?? hash
    path = text[..<mark]
    query = mark < hash ? text[(mark + 1)..<hash] : nil
    fragment = hash < text.endIndex ? text[(hash + 1)...] : nil
  }

  var queryAndFragment: String {
    var text = ""
    for (mark, part) in [("?", query), ("#", fragment)] {
      if let part { text += mark + URLCharacters.encode(part, allowing: URLCharacters.isInQuery) }
    }
    return text
  }
}

/// User information, host and port.
private struct Authority {
  let text: String

  /// - Returns: `nil` for a host or a port that is not valid.
  init?(_ bytes: ArraySlice<UInt8>, scheme: String) {
    let mark = bytes.lastIndex(of: UInt8(ascii: "@"))
    let user = mark.map { bytes[..<$0] } ?? []
    let place = mark.map { bytes[($0 + 1)...] } ?? bytes
    // The colons of an IPv6 address are in brackets.
    let bracket = place.first == UInt8(ascii: "[") ? place.firstIndex(of: UInt8(ascii: "]")) : place.startIndex
    guard let bracket else { return nil }
    let colon = place[bracket...].firstIndex(of: UInt8(ascii: ":"))
    guard let host = URLHost.ascii(Array(place[..<(colon ?? place.endIndex)])) else { return nil }
    var text = host
    if let colon, colon + 1 < place.endIndex {
      let digits = place[(colon + 1)...]
      guard digits.allSatisfy({ (0x30...0x39).contains($0) }),
        let port = Int(String(decoding: digits, as: UTF8.self)), port <= 65_535
      else { return nil }
      if port != URLText.defaultPort(of: scheme) { text += ":\(port)" }
    }
    if user.contains(where: { $0 != UInt8(ascii: ":") }) {
      text = URLCharacters.encode(user, allowing: URLCharacters.isInUserInfo) + "@" + text
    }
    self.text = text
  }
}

extension Array {
  /// Returns the elements without those at both ends that meet the condition.
  fileprivate func trimming(where isTrimmed: (Element) -> Bool) -> [Element] {
    guard let first = firstIndex(where: { !isTrimmed($0) }), let last = lastIndex(where: { !isTrimmed($0) }) else {
      return []
    }
    return Array(self[first...last])
  }
}
