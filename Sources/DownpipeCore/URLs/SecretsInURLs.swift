package import Foundation

extension URL {
  /// The text of the URL wherever it is shown or written outside the ledger; see ``Swift/String/redactedURL``.
  ///
  /// The ledger is the exception. To continue after a restart it must keep the complete URL with user information and
  /// signature, the mirrors, the URL of a refreshed link, and the header fields of the request, including
  /// `Authorization` and `Cookie`. A ledger file must therefore be readable by its user alone. It keeps no secret that
  /// is not needed: errors have none, and the resource that a validator applies to (``resourceKey``) has none.
  package var redacted: String { absoluteString.redactedURL }
}

extension String {
  /// The text of a URL with its scheme, host and path, and the names of the fields of its query:
  /// `https://…@example.org/film?id=…&token=…`.
  ///
  /// User information (RFC 3986 §3.2.1) and the values of the query become `…`, and a fragment is left out. No list of
  /// names would have all secrets: what a value is for, only its server knows. A part of a query without a value has no
  /// name: it may be a key by itself (`?c2VjcmV0`). Names that are long or have other characters than usual become `…`,
  /// too. A secret in the path is not recognised.
  ///
  /// Text that is not a valid URL is accepted, because the message that rejects it shows it. Redacted text stays as it is.
  package var redactedURL: String {
    // Most URLs of a long list contain none of these characters.
    guard utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
    else { return self }
    // Not characters: a combining mark makes another one of the question mark before it.
    let scalars = unicodeScalars[...]
    let end = scalars.endOfPath
    let path = String(scalars[..<end].withoutUser)
    guard end < scalars.endIndex, scalars[end] == "?" else { return path }
    let query = scalars[end...].dropFirst().prefix { $0 != "#" }
    let fields = query.split(separator: "&", omittingEmptySubsequences: false).map { part in
      part.split(separator: ";", omittingEmptySubsequences: false).map(\.fieldName).joined(separator: ";")
    }
    return path + "?" + fields.joined(separator: "&")
  }

  /// A text, such as another library's message, with each URL in it redacted; see ``redactedURL``.
  package var redactingURLs: String {
    guard contains("://") else { return self }
    var text = ""
    var rest = unicodeScalars[...]
    while let mark = rest.firstRange(of: "://".unicodeScalars) {
      let before = rest[..<mark.lowerBound].lastIndex { !$0.isInScheme }
      let start = before.map { rest.index(after: $0) } ?? rest.startIndex
      let url = rest[start...].prefix { !$0.endsURL }
      // Marks of the sentence may follow.
      let end = url.lastIndex { !$0.isPunctuation }.map(url.index(after:)) ?? mark.upperBound
      text += String(rest[..<start]) + String(rest[start..<end]).redactedURL
      rest = rest[end...]
    }
    return text + String(rest)
  }
}

extension Substring.UnicodeScalarView {
  /// Where the query or the fragment of a URL begins.
  fileprivate var endOfPath: Index {
    func isEnd(_ scalar: Unicode.Scalar) -> Bool { scalar == "?" || scalar == "#" }
    let end = firstIndex(where: isEnd) ?? endIndex
    // This is not a port: the password contains an unescaped mark, and ends further on.
    guard !self[..<end].contains("@"), self[..<end].hasUnreadablePort, let at = lastIndex(of: "@") else { return end }
    return self[at...].firstIndex(where: isEnd) ?? endIndex
  }

  /// Scheme, authority and path, with `…` in place of the user information before the `@` of an authority.
  fileprivate var withoutUser: Self {
    guard let last = lastIndex(of: "@") else { return self }
    var text = Self()
    var rest = self
    // The path of an archive or a proxy may be another URL. A server may send thousands in one: each is read once.
    while rest.startIndex <= last {
      var start = rest.firstIndex { !$0.isSlash } ?? endIndex
      if let colon = rest.firstIndex(of: ":"), rest[colon...].dropFirst().first?.isSlash ?? false {
        start = rest[colon...].dropFirst().firstIndex { !$0.isSlash } ?? endIndex
      }
      let authority = rest[start...].prefix { !$0.isSlash }
      // This is not a port: the password contains an unescaped slash and ends further on.
      let mark = authority.lastIndex(of: "@") ?? (start <= last && authority.endsWithUnreadablePort ? last : nil)
      text += rest[..<start]
      if mark != nil { text += "…".unicodeScalars }
      rest = rest[(mark ?? start)...]
      guard let next = rest.firstRange(of: "://".unicodeScalars) else { break }
      text += rest[..<next.lowerBound]
      rest = rest[next.lowerBound...]
    }
    return text + rest
  }

  /// Whether the authority of a URL has a colon that is not followed by the digits of a port.
  private var hasUnreadablePort: Bool {
    guard let mark = firstRange(of: "://".unicodeScalars) else { return false }
    return self[mark.upperBound...].prefix { !$0.isSlash }.endsWithUnreadablePort
  }

  /// The same of an authority.
  private var endsWithUnreadablePort: Bool {
    guard let colon = lastIndex(of: ":"), last != "]" else { return false }
    return !self[colon...].dropFirst().allSatisfy(\.isDigit)
  }

  /// A field of a query without its value: `page=…` for `page=2`, and `…` if its name may be a value.
  fileprivate var fieldName: String {
    guard let equals = firstIndex(of: "="), self[..<equals].isPlainName,
      // Base64 ends with equals signs.
      self[equals...].contains(where: { $0 != "=" })
    else { return isEmpty ? "" : "…" }
    return String(self[...equals]) + "…"
  }

  /// Whether the text may be shown as the name of a field: a short word with few digits, such as `X-Amz-Content-Sha256`.
  private var isPlainName: Bool {
    (1...32).contains(count) && count(where: \.isDigit) <= 3
      && allSatisfy { $0.isASCII && ($0.properties.isAlphabetic || $0.isDigit || $0 == "-" || $0 == "_" || $0 == ".") }
  }
}

extension Unicode.Scalar {
  /// Whether the scalar separates parts of a URL. URL parsers treat a backslash as a slash.
  fileprivate var isSlash: Bool { self == "/" || self == "\\" }
  fileprivate var isDigit: Bool { ("0"..."9").contains(self) }
  /// Whether the scalar may be part of a scheme (RFC 3986 §3.1).
  fileprivate var isInScheme: Bool {
    isASCII && (properties.isAlphabetic || isDigit || "+-.".unicodeScalars.contains(self))
  }
  /// Whether a URL within a sentence ends before the scalar.
  fileprivate var endsURL: Bool { properties.isWhitespace || "\"“”<>".unicodeScalars.contains(self) }
  /// Whether the scalar belongs to the sentence where it is the last one of a URL.
  fileprivate var isPunctuation: Bool { ".,:;!?)]}|'".unicodeScalars.contains(self) }
}
