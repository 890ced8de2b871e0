package import Foundation

/// The URLs of the same file that a server names in `Link` fields (RFC 8288) with the relation `duplicate` (RFC 6249).
package enum DuplicateLinks {
  /// The most URLs that are taken from one response.
  package static let most = 16

  /// Returns the URLs of the same file, by their priority: the lowest `pri` first, then those without one; among equals
  /// those with `pref`, then in the order of the fields.
  ///
  /// Left out are links about another resource (`anchor`), URLs that are not HTTP, that have user information or that
  /// would leave `https` for `http`, and the URL of the response itself. Malformed links are skipped.
  /// - Parameter url: The URL that served the response. References are relative to it.
  package static func urls(in headers: HeaderFields, of url: URL) -> [URL] {
    let fields = headers.values("Link")
    guard !fields.isEmpty else { return [] }
    var links: [(place: Place, url: URL)] = []
    var texts: Set = [HTTPURL.wireText(url)]
    for field in fields.prefix(mostFields) {
      var parser = LinkParser(field)
      while let link = parser.nextLink() {
        guard link.isDuplicate, let target = target(link, of: url), texts.insert(HTTPURL.wireText(target)).inserted
        else { continue }
        links.append((Place(link, number: links.count), target))
      }
    }
    return links.sorted { $0.place < $1.place }.prefix(most).map(\.url)
  }

  /// Returns the URLs that may be used beside a URL: those of `https` only beside `https`, and not the URL itself.
  ///
  /// The responses of redirects may name duplicates as well, as those of MirrorBrain do.
  static func usable(_ urls: [URL], beside url: URL) -> [URL] {
    let isSecure = URLText(url).isHTTPS
    var texts: Set = [HTTPURL.wireText(url)]
    let usable = urls.filter { (!isSecure || URLText($0).isHTTPS) && texts.insert(HTTPURL.wireText($0)).inserted }
    return Array(usable.prefix(most))
  }

  /// A response with more fields is not honest.
  static let mostFields = 64
  private static let longestURL = 4096

  static func target(_ link: LinkParser.Link, of url: URL) -> URL? {
    guard link.target.utf8.count <= longestURL, let target = HTTPURL.resolve(link.target, against: url) else {
      return nil
    }
    let parts = URLText(target)
    guard parts.userInfo == nil, parts.isHTTPS || !URLText(url).isHTTPS, (try? Redirects.origin(of: target)) != nil
    else { return nil }
    return target
  }

  /// What the order depends on.
  private struct Place: Comparable {
    private let priority: Int
    private let isPreferred: Bool
    private let number: Int

    init(_ link: LinkParser.Link, number: Int) {
      // From 1 to 999,999; without one, a link has the lowest priority (RFC 6249 §2).
      let stated = link["pri"].flatMap { Int($0) }
      priority = stated.flatMap { (1...999_999).contains($0) ? $0 : nil } ?? 999_999
      isPreferred = link["pref"] != nil
      self.number = number
    }

    static func < (left: Self, right: Self) -> Bool {
      if left.priority != right.priority { return left.priority < right.priority }
      if left.isPreferred != right.isPreferred { return left.isPreferred }
      return left.number < right.number
    }
  }
}

extension LinkParser.Link {
  /// Whether the target has the same bytes as the response that has the link.
  fileprivate var isDuplicate: Bool { has("duplicate") }

  /// Whether the link is about the response that has it, with a relation.
  func has(_ relation: String) -> Bool {
    // With an anchor, the link is about another resource than the response (RFC 8288 §3.2).
    guard self["anchor"] == nil, let relations = self["rel"] else { return false }
    return relations.split(whereSeparator: \.isWhitespace).contains { $0.caseInsensitivelyEquals(relation) }
  }
}
