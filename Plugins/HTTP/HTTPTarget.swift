public import DownpipeCore
import Foundation

/// Which URLs are asked for, and what a redirect leads to: pure functions.
enum HTTPTarget {
  /// Whether the scheme is `http` or `https`.
  static func isHTTP(_ url: URL) -> Bool {
    // Each URL is asked several times, and Foundation would look for its parts each time.
    hasScheme("http", url) || hasScheme("https", url)
  }

  static func isSecure(_ url: URL) -> Bool { hasScheme("https", url) }

  private static func hasScheme(_ scheme: String, _ url: URL) -> Bool {
    let text = url.absoluteString
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
    return text[..<colon].caseInsensitivelyEquals(scheme)
  }

  /// Whether a host can go into a `Host` field, a name look-up and a SOCKS request as it is.
  static func isPlainHost(_ host: String) -> Bool {
    !host.isEmpty && host.utf8.count <= 253
      && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !forbiddenInHosts.contains($0) }
  }

  private static let forbiddenInHosts = Array(" \"#%/<>?@\\^`{|}".utf8)

  /// Refuses what cannot be asked for, and what would stop the process in the library below: a port past 65535.
  static func check(_ url: URL) throws(DownloadError) {
    guard isHTTP(url) else {
      throw DownloadError(
        .unsupportedURL, "only http and https URLs can be fetched, not “\((url.scheme ?? "").prefix(32))”")
    }
    guard let host = url.host(percentEncoded: false), !host.isEmpty else {
      throw DownloadError(.invalidRequest, "the URL has no host: write it as http://host/path")
    }
    guard isPlainHost(host) else {
      throw DownloadError(.invalidRequest, "the URL's host holds characters that no host name has")
    }
    guard (1...65_535).contains(url.port ?? 80) else {
      throw DownloadError(.invalidRequest, "the URL's port is not between 1 and 65535")
    }
  }

  /// Where an answer sends the client (RFC 9110 §15.4), or `nil` when it is the answer itself.
  static func redirect(from url: URL, status: Int, locations: [String]) throws(DownloadError) -> URL? {
    guard [301, 302, 303, 307, 308].contains(status), let location = locations.first?.trimmingHTTPWhitespace,
      !location.isEmpty
    else { return nil }
    guard locations.allSatisfy({ $0.trimmingHTTPWhitespace == location }) else {
      throw DownloadError(
        .invalidResponse, "the server redirects to several places at once; ask its operator", httpStatus: status)
    }
    guard let target = URL(string: location, relativeTo: url)?.absoluteURL else {
      throw DownloadError(
        .invalidResponse, "the server redirects to something that is no URL; ask its operator", httpStatus: status)
    }
    do throws(DownloadError) {
      try check(target)
    } catch {
      throw DownloadError(error.code, "the server redirects to a URL that cannot be fetched: \(error.message)")
    }
    if isSecure(url), !isSecure(target) {
      throw DownloadError(
        .insecureRedirect,
        "the server redirects from https to http (\(target.redacted)), where anybody on the way could change the "
          + "file; if you accept that, ask for the http URL itself")
    }
    return target
  }

  /// Whether credentials for the one may be sent to the other: same scheme, host and port (RFC 6454).
  static func haveSameOrigin(_ left: URL, _ right: URL) -> Bool {
    func port(_ url: URL) -> Int { url.port ?? (isSecure(url) ? 443 : 80) }
    guard let a = left.host(percentEncoded: false), let b = right.host(percentEncoded: false) else { return false }
    return a.caseInsensitivelyEquals(b) && isSecure(left) == isSecure(right) && port(left) == port(right)
  }

  /// `host` or `host:port`, as the `Host` field has it.
  static func authority(_ url: URL) -> String {
    let host = url.host(percentEncoded: false) ?? ""
    let bracketed = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    guard let port = url.port, port != (isSecure(url) ? 443 : 80) else { return bracketed }
    return "\(bracketed):\(port)"
  }
}

extension DownloadError.Code {
  /// A redirect from `https:` to `http:`, which is never followed.
  public static let insecureRedirect = DownloadError.Code("insecureRedirect")
}
