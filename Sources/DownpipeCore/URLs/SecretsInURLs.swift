package import Foundation

extension URL {
  /// The text of the URL for messages and logs: without user information, and without values of query and fragment; see
  /// ``Swift/String/redactedURL``.
  ///
  /// A URL has secrets in its user information (RFC 3986 §3.2.1), in the query of a signed link, and sometimes in the
  /// fragment of a log-in. Messages, events and tables therefore use this form.
  ///
  /// The ledger is the exception. To continue after a restart it must keep the complete URL with user information and
  /// signature, the mirrors, the URL of a refreshed link, and the header fields of the request, including
  /// `Authorization` and `Cookie`. A ledger file must therefore be readable by its user alone. It keeps no secret that
  /// is not needed: errors have none, and the resource that a validator applies to (``resourceKey``) has none.
  package var redacted: String { absoluteString.redactedURL }
}

extension String {
  /// The text of a URL for messages: with `…` in place of user name and password, and of every value of query and
  /// fragment. The names of their fields are kept, so that the reader recognises the URL:
  /// `https://…@example.org/film?id=…&token=…`.
  ///
  /// No list of names would have them all: what a value is for, only its server knows. Text that is not a valid URL is
  /// redacted more strictly, because the message that rejects it shows it. A secret in the path is not recognised.
  package var redactedURL: String { withoutSecrets(.all) }

  /// The text of a URL where it tells a download from others, as in a list for a script: with `…` in place of user name
  /// and password, and of each value of query or fragment whose name denotes a secret (`token`, `sig`,
  /// `X-Amz-Signature` …) or that is long and random. Other values are kept. It is not for messages, which get further.
  package var identifyingURL: String { withoutSecrets(.secret) }

  private func withoutSecrets(_ values: SecretItem.Values) -> String {
    // Most URLs of a long list contain none of these characters.
    guard utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
    else { return self }
    var end = firstIndex { $0 == "?" || $0 == "#" } ?? endIndex
    // This is not a port: the password contains an unescaped mark, and ends further on.
    if !self[..<end].contains("@"), self[..<end].hasUnreadablePort, let at = lastIndex(of: "@") {
      end = self[at...].firstIndex { $0 == "?" || $0 == "#" } ?? endIndex
    }
    var text = Self.withoutUser(self[..<end])
    for part in self[end...].split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).enumerated() {
      if part.offset > 0 { text += "#" }
      let isQuery = part.element.hasPrefix("?")
      text += (isQuery ? "?" : "") + SecretItem.redacted(isQuery ? part.element.dropFirst() : part.element, values)
    }
    return text
  }

  /// A text, such as another library's message, with each URL in it redacted.
  package var redactingURLs: String {
    guard contains("://") else { return self }
    var text = ""
    var rest = self[...]
    while let mark = rest.firstRange(of: "://") {
      let before = rest[..<mark.lowerBound].lastIndex { !$0.isInScheme }
      let start = before.map { rest.index(after: $0) } ?? rest.startIndex
      let end = rest[mark.upperBound...].firstIndex(where: \.endsURL) ?? rest.endIndex
      text += rest[..<start] + String(rest[start..<end]).redactedURL
      rest = rest[end...]
    }
    return text + rest
  }

  /// Returns scheme, authority and path without the user information before the authority's `@`.
  private static func withoutUser(_ text: Substring) -> String {
    guard text.contains("@") else { return String(text) }
    var start = text.firstIndex { !$0.isSlash } ?? text.endIndex
    if let colon = text.firstIndex(of: ":"), text[colon...].dropFirst().first?.isSlash ?? false {
      start = text[colon...].dropFirst().firstIndex { !$0.isSlash } ?? text.endIndex
    }
    let authority = text[start...].prefix { !$0.isSlash }
    var mark = authority.lastIndex(of: "@")
    if mark == nil, let colon = authority.lastIndex(of: ":"),
      !authority[colon...].dropFirst().allSatisfy(\.isNumber), authority.last != "]"
    {
      // This is not a port: the password contains an unescaped slash and ends further on.
      mark = text.lastIndex(of: "@")
    }
    guard let mark else { return String(text) }
    return text[..<start] + "…" + text[mark...]
  }
}

extension Substring {
  /// Whether the authority of a URL has a colon that is not followed by the digits of a port.
  fileprivate var hasUnreadablePort: Bool {
    guard let mark = firstRange(of: "://") else { return false }
    let authority = self[mark.upperBound...].prefix { !$0.isSlash }
    guard let colon = authority.lastIndex(of: ":"), authority.last != "]" else { return false }
    return !authority[colon...].dropFirst().allSatisfy(\.isNumber)
  }
}

extension Character {
  /// Whether the character separates parts of a URL. URL parsers treat a backslash as a slash.
  fileprivate var isSlash: Bool { self == "/" || self == "\\" }
  /// Whether the character may be part of a scheme (RFC 3986 §3.1).
  fileprivate var isInScheme: Bool { isASCII && (isLetter || isNumber || "+-.".contains(self)) }
  /// Whether a URL within a sentence ends before the character.
  fileprivate var endsURL: Bool { isWhitespace || "\"“”<>|,;)]}".contains(self) }
}

/// Redaction of the items of a query, such as `page=2`.
private enum SecretItem {
  /// The values that are replaced.
  enum Values {
    case all
    /// Those that look like secrets.
    case secret
  }

  /// Returns a query or a fragment with values replaced by `…`.
  static func redacted(_ query: Substring, _ values: Values) -> String {
    var text = ""
    var rest = query
    while true {
      let item = rest.prefix { $0 != "&" && $0 != ";" }
      text += values == .all ? nameOnly(item) : redactedItem(item)
      guard item.endIndex < rest.endIndex else { return text }
      text.append(rest[item.endIndex])
      rest = rest[rest.index(after: item.endIndex)...]
    }
  }

  /// Returns the name of a field. Without an equals sign it may be a value: only a word is a name.
  private static func nameOnly(_ item: Substring) -> String {
    guard let equals = item.firstIndex(of: "=") else { return isWord(item) ? String(item) : "…" }
    let value = item[equals...].dropFirst()
    // Base64 ends with equals signs.
    guard value.contains(where: { $0 != "=" }) else { return isWord(item[..<equals]) ? String(item) : "…" }
    return looksRandom(item[..<equals]) ? "…" : item[...equals] + "…"
  }

  private static func isWord(_ text: Substring) -> Bool {
    text.utf8.count <= 32 && text.allSatisfy { $0.isASCII && ($0.isLetter || "-_.".contains($0)) }
  }

  private static func redactedItem(_ item: Substring) -> String {
    guard let equals = item.firstIndex(of: "=") else { return looksRandom(item) ? "…" : String(item) }
    let value = item[equals...].dropFirst()
    guard !value.isEmpty, namesSecret(item[..<equals]) || looksRandom(value) || looksLikeURLWithUser(value) else {
      return String(item)
    }
    return item[...equals] + "…"
  }

  private static let prefixes = ["x-amz-", "x-goog-", "x-oss-", "x-ms-", "x-cos-", "hdn"]
  private static let parts = [
    "signature", "token", "secret", "passw", "credential", "session", "authoriz", "apikey", "accesskey", "hmac", "jwt",
  ]
  private static let words: Set<String> = [
    "key", "sig", "sign", "auth", "pass", "pwd", "pw", "sid", "hash", "md5", "otp", "code", "policy", "ticket", "st",
  ]

  private static func namesSecret(_ name: Substring) -> Bool {
    let name = (String(name).removingPercentEncoding ?? String(name))
    let lower = name.lowercased()
    if prefixes.contains(where: lower.hasPrefix) || parts.contains(where: lower.contains) { return true }
    // `Key-Pair-Id`, `api_key` and `authKey`, but not `monkey` or `design`.
    var separated = ""
    var last: Character?
    for character in name {
      if character.isUppercase, last?.isLowercase ?? false { separated += " " }
      separated += character.isLetter || character.isNumber ? character.lowercased() : " "
      last = character
    }
    return separated.split(separator: " ").contains { words.contains(String($0)) }
  }

  /// Whether a value is long and has no words, as keys, digests and signatures have none. A value with a full stop is a
  /// file name, unless it begins as a JSON Web Token (RFC 7519 §3.1: `{"` in Base64).
  private static func looksRandom(_ value: Substring) -> Bool {
    guard value.utf8.count >= 24 else { return false }
    if value.hasPrefix("eyJ") { return true }
    let value = value.removingPercentEncoding ?? String(value)
    guard value.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+/-_=~".contains($0)) }) else {
      return false
    }
    let digits = value.count(where: \.isNumber)
    // All but 1 % of random texts of 24 characters have a digit; in words and dates, letters and digits do not
    // alternate.
    let changes = zip(value, value.dropFirst()).count { $0.isNumber != $1.isNumber }
    return digits >= 2 && digits < value.count && changes >= 4
  }

  /// Whether the value is the target of a redirector or proxy, `?url=https://user:password@host/`, percent-encoded or
  /// not.
  private static func looksLikeURLWithUser(_ value: Substring) -> Bool {
    let text = value.removingPercentEncoding ?? String(value)
    guard text.contains("://") else { return false }
    return text.identifyingURL != text
  }
}
