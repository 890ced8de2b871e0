#if AsyncHTTPClient
  public import DownpipeCore
  import Foundation

  /// Checks request URLs and resolves redirects: pure functions.
  enum HTTPTarget {
    /// Whether the scheme is `http` or `https`.
    static func isHTTP(_ url: URL) -> Bool {
      // This is called several times for each URL, and Foundation would parse the URL each time.
      hasScheme("http", url) || hasScheme("https", url)
    }

    static func isSecure(_ url: URL) -> Bool { hasScheme("https", url) }

    private static func hasScheme(_ scheme: String, _ url: URL) -> Bool {
      let text = url.absoluteString
      guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
      return text[..<colon].caseInsensitivelyEquals(scheme)
    }

    /// Whether a host can be used unchanged in a `Host` field, a name look-up and a SOCKS request.
    static func isPlainHost(_ host: String) -> Bool {
      !host.isEmpty && host.utf8.count <= 253
        && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !forbiddenInHosts.contains($0) }
    }

    private static let forbiddenInHosts = Array(" \"#%/<>?@\\^`{|}".utf8)

    /// Rejects invalid URLs, and ports above 65535, for which SwiftNIO would stop the process.
    static func check(_ url: URL) throws(DownloadError) {
      guard isHTTP(url) else {
        throw DownloadError(
          .unsupportedURL, "only http and https URLs can be fetched, not “\((url.scheme ?? "").prefix(32))”")
      }
      guard let host = url.host(percentEncoded: false), !host.isEmpty else {
        throw DownloadError(.invalidRequest, "the URL has no host: write it as http://host/path")
      }
      guard isPlainHost(host) else {
        throw DownloadError(.invalidRequest, "the host of the URL has characters that are not allowed in host names")
      }
      guard (1...65_535).contains(url.port ?? 80) else {
        throw DownloadError(.invalidRequest, "the port of the URL is not between 1 and 65535")
      }
    }

    /// The target of a redirect (RFC 9110 §15.4); `nil` when the response is not a redirect.
    static func redirect(from url: URL, status: Int, locations: [String]) throws(DownloadError) -> URL? {
      guard [301, 302, 303, 307, 308].contains(status), let location = locations.first?.trimmingHTTPWhitespace,
        !location.isEmpty
      else { return nil }
      guard locations.allSatisfy({ $0.trimmingHTTPWhitespace == location }) else {
        throw DownloadError(
          .invalidResponse, "the redirect has several different Location fields; ask the operator of the server",
          httpStatus: status)
      }
      guard let target = URL(string: location, relativeTo: url)?.absoluteURL else {
        throw DownloadError(
          .invalidResponse, "the Location of the redirect is not a URL; ask the operator of the server",
          httpStatus: status)
      }
      do throws(DownloadError) {
        try check(target)
      } catch {
        throw DownloadError(error.code, "the server redirects to a URL that cannot be fetched: \(error.message)")
      }
      if isSecure(url), !isSecure(target) {
        throw DownloadError(
          .insecureRedirect,
          "the server redirects from https to http (\(target.redacted)), where the file could be changed in transit; "
            + "if you accept that, request the http URL directly")
      }
      return target
    }

    /// Whether both URLs have the same scheme, host and port (RFC 6454), so that credentials for one may be sent to the
    /// other.
    static func haveSameOrigin(_ left: URL, _ right: URL) -> Bool {
      func port(_ url: URL) -> Int { url.port ?? (isSecure(url) ? 443 : 80) }
      guard let a = left.host(percentEncoded: false), let b = right.host(percentEncoded: false) else { return false }
      return a.caseInsensitivelyEquals(b) && isSecure(left) == isSecure(right) && port(left) == port(right)
    }

    /// The value of the `Host` field: `host` or `host:port`.
    static func authority(_ url: URL) -> String {
      let host = url.host(percentEncoded: false) ?? ""
      let bracketed = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
      guard let port = url.port, port != (isSecure(url) ? 443 : 80) else { return bracketed }
      return "\(bracketed):\(port)"
    }
  }
#endif
