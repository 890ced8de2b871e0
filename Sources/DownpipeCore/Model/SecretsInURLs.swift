package import Foundation

extension URL {
  /// The URL's text, fit for messages and logs: without user information, and without the values of query and
  /// fragment that look like secrets; see ``Swift/String/redactedURL``. A URL carries secrets in its user information
  /// (RFC 3986 §3.2.1), in the query of a signed link, and at times in the fragment of a log-in: what is printed, in a
  /// message, an event or a table, is this form.
  ///
  /// The ledger is the exception. To go on after a restart it must keep the URL as it is, with user information and
  /// signature, the mirrors, the address after a link was refreshed, and the request's header fields, `Authorization`
  /// and `Cookie` among them. A ledger file must therefore be readable by its user alone. It keeps no secret that
  /// nothing needs: the resource that a validator belongs to (``resourceKey``) has none, and errors have none.
  package var redacted: String { absoluteString.redactedURL }
}

extension String {
  /// The text of a URL with `…` in the place of its secrets: user name and password, and each value of the query or the
  /// fragment whose name says that it is one (`token`, `sig`, `X-Amz-Signature` …) or that looks like one, being long
  /// and random. Anything else stays as it is, so that the reader knows which URL is meant.
  ///
  /// A text that is no valid URL is treated with more suspicion, not with less: it is shown in the very message
  /// that refuses it. A secret that is part of a path is not recognised.
  package var redactedURL: String {
    // Nearly every URL of a long list has none of the three.
    guard utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
    else { return self }
    let end = firstIndex { $0 == "?" || $0 == "#" } ?? endIndex
    var text = Self.withoutUser(self[..<end])
    for part in self[end...].split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).enumerated() {
      if part.offset > 0 { text += "#" }
      let isQuery = part.element.hasPrefix("?")
      text += (isQuery ? "?" : "") + SecretItem.redacted(isQuery ? part.element.dropFirst() : part.element)
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

  /// Scheme, authority and path without what stands before the authority's `@`.
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
      // No port: the password has an unescaped slash in it, and ends somewhere behind.
      mark = text.lastIndex(of: "@")
    }
    guard let mark else { return String(text) }
    return text[..<start] + "…" + text[mark...]
  }
}

extension Character {
  /// Whether it separates what a URL is made of; readers of URLs take a backslash for a slash.
  fileprivate var isSlash: Bool { self == "/" || self == "\\" }
  /// Whether it may be in the name of a scheme (RFC 3986 §3.1).
  fileprivate var isInScheme: Bool { isASCII && (isLetter || isNumber || "+-.".contains(self)) }
  /// Whether a URL that is part of a sentence ends before it.
  fileprivate var endsURL: Bool { isWhitespace || "\"“”<>|,;)]}".contains(self) }
}

/// An item of a query, such as `page=2`.
private enum SecretItem {
  /// A query, or a fragment, with the values that look like secrets hidden.
  static func redacted(_ query: Substring) -> String {
    var text = ""
    var rest = query
    while true {
      let item = rest.prefix { $0 != "&" && $0 != ";" }
      text += redactedItem(item)
      guard item.endIndex < rest.endIndex else { return text }
      text.append(rest[item.endIndex])
      rest = rest[rest.index(after: item.endIndex)...]
    }
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

  /// Whether a value is long and without words, as keys, digests and signatures are. A name with a full stop is a
  /// file's, unless it begins as a JSON Web Token does (RFC 7519 §3.1: `{"` in Base64).
  private static func looksRandom(_ value: Substring) -> Bool {
    guard value.utf8.count >= 24 else { return false }
    if value.hasPrefix("eyJ") { return true }
    let value = value.removingPercentEncoding ?? String(value)
    guard value.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+/-_=~".contains($0)) }) else {
      return false
    }
    let digits = value.count(where: \.isNumber)
    // Twenty-four random characters have a digit but once in a hundred times; words and dates are not mixed so.
    let changes = zip(value, value.dropFirst()).count { $0.isNumber != $1.isNumber }
    return digits >= 2 && digits < value.count && changes >= 4
  }

  /// A redirector's or a proxy's target, `?url=https://user:password@host/`, percent-encoded or not.
  private static func looksLikeURLWithUser(_ value: Substring) -> Bool {
    let text = value.removingPercentEncoding ?? String(value)
    guard text.contains("://") else { return false }
    return text.redactedURL != text
  }
}
