package import DownpipeCore
package import Foundation

#if canImport(FoundationNetworking)
  package import FoundationNetworking
#endif

/// Checks request URLs and makes Foundation's requests from them.
package enum RequestURL {
  package static func isSupported(_ url: URL) -> Bool {
    guard let scheme = url.scheme, let host = url.host(percentEncoded: true), !host.isEmpty else { return false }
    return scheme.caseInsensitivelyEquals("http") || scheme.caseInsensitivelyEquals("https")
  }

  package static func request(_ url: URL, _ fields: HeaderFields) -> URLRequest {
    var request = URLRequest(url: normalized(url))
    request.httpMethod = "GET"
    request.timeoutInterval = URLSessionSource.Configuration.never
    request.httpShouldHandleCookies = false
    for field in fields.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    return request
  }

  /// Removes the fragment, which is never sent, and lowercases the scheme, as Foundation on Linux requires.
  private static func normalized(_ url: URL) -> URL {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
    parts.scheme = parts.scheme?.lowercased()
    parts.fragment = nil
    if parts.percentEncodedPath.isEmpty { parts.percentEncodedPath = "/" }
    return parts.url ?? url
  }
}

/// Follows redirects (RFC 9110 §15.4) for one opening.
struct Redirects {
  private(set) var url: URL
  private(set) var fields: HeaderFields
  private var visited: Set<String>
  private let maximum: Int

  init(_ url: URL, _ fields: HeaderFields, maximum: Int) {
    self.url = url
    self.fields = fields
    self.maximum = maximum
    visited = [Self.key(url)]
  }

  /// Moves ``url`` to the target of a redirect.
  ///
  /// - Returns: `false` when the answer is not a redirect, or is a redirect without a target.
  /// - Throws: ``DownloadError`` with `.tooManyRedirects` for a loop or too many redirects, `.invalidResponse` for a
  ///   malformed target, `.unsupportedURL` for a target that is not HTTP, `.tls` for a redirect from https to http.
  mutating func follow(status: Int, location: String?) throws(DownloadError) -> Bool {
    guard [301, 302, 303, 307, 308].contains(status), let location, !location.isEmpty else { return false }
    guard location.utf8.count <= 16_384,
      let target = URL(string: location.trimmingHTTPWhitespace, relativeTo: url)?.absoluteURL
    else {
      throw DownloadError(.invalidResponse, "the redirect's Location “\(location.prefix(100).escaped)” is not a URL")
    }
    guard RequestURL.isSupported(target) else {
      throw DownloadError(
        .unsupportedURL,
        "the server redirects to a URL that is not HTTP (scheme “\((target.scheme ?? "").prefix(20).escaped)”)")
    }
    if url.scheme?.lowercased() == "https", target.scheme?.lowercased() != "https" {
      throw DownloadError(.tls, "the server redirects from https to \(target.redacted), which is not encrypted")
    }
    guard visited.count <= maximum else {
      throw DownloadError(.tooManyRedirects, "the server redirects more than \(maximum) times")
    }
    guard visited.insert(Self.key(target)).inserted else {
      throw DownloadError(.tooManyRedirects, "the server redirects in a loop, back to \(target.redacted)")
    }
    if Self.origin(target) != Self.origin(url) {
      // Credentials and the host name belong to the origin that they were set for.
      for name in ["Authorization", "Cookie", "Proxy-Authorization", "Host"] { fields[name] = nil }
    }
    url = target
    return true
  }

  private static func key(_ url: URL) -> String {
    var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
    parts?.fragment = nil
    return parts?.string ?? url.absoluteString
  }

  private static func origin(_ url: URL) -> [String] {
    let scheme = url.scheme?.lowercased() ?? ""
    let port = url.port ?? (scheme == "https" ? 443 : 80)
    return [scheme, url.host(percentEncoded: true)?.lowercased() ?? "", String(port)]
  }
}
