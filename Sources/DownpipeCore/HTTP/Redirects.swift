package import Foundation

/// The redirects of one request, for every HTTP source (RFC 9110 §15.4).
///
/// It decides where the request goes next and what may be sent there. Bound fields (see ``HeaderField/Scope``) and user
/// information are sent to the origin of the first URL only, also when a redirect leads back to it. A first URL that a
/// server has named gets none of them.
///
/// A source requests ``url`` (as ``HTTPURL/wireText(_:)``) with ``fields`` and ``userInfo`` as long as
/// ``follow(status:headers:)`` returns `true`, and calls ``record(in:)`` with its reply.
package struct Redirects: Sendable {
  /// What is followed.
  package struct Rules: Sendable, Hashable {
    /// The most redirects that are followed; with 0 a redirect is the answer.
    package var maximum: Int
    /// Whether a redirect from `https` to `http` is followed.
    package var allowsInsecure: Bool

    package init(maximum: Int = 10, allowsInsecure: Bool = false) {
      self.maximum = maximum
      self.allowsInsecure = allowsInsecure
    }
  }

  /// The URL to request. After a redirect it has neither user information nor fragment.
  package private(set) var url: URL
  /// The fields to send with this request.
  package private(set) var fields: HeaderFields
  /// The URLs after the first one.
  package private(set) var hops: [URL] = []

  /// The duplicates of the file that the responses with redirects have named.
  private var duplicates: [URL] = []
  /// The descriptions of the file that they have named.
  private var descriptions: [SourceReply.Description] = []

  private let rules: Rules
  private let allFields: HeaderFields
  /// The origin of the first URL.
  package let firstOrigin: Origin
  /// The origin of ``url``.
  package private(set) var origin: Origin
  private var user: UserInfo?
  private let isNamedByServer: Bool

  /// Creates the state before the first request.
  ///
  /// - Throws: ``DownloadError`` with `.unsupportedURL` for a URL that is not HTTP, `.invalidRequest` for one without a
  ///   valid host and port.
  package init(_ request: SourceRequest, fields: HeaderFields, rules: Rules) throws(DownloadError) {
    url = request.url
    self.rules = rules
    isNamedByServer = request.isNamedByServer
    allFields = fields
    let parts = URLText(request.url)
    firstOrigin = try Self.origin(of: parts)
    origin = firstOrigin
    self.fields = isNamedByServer ? fields.forEverybody : fields.reaching(origin, from: firstOrigin)
    user = UserInfo(parts)
  }

  /// Whether this request may have credentials: the user has named its origin, and no server.
  package var mayLogIn: Bool { !isNamedByServer && origin == firstOrigin }

  /// User name and password for this request, percent-decoded; `nil` when the URL of this origin has none, or when the
  /// fields have an `Authorization`.
  package var userInfo: (user: String, password: String?)? {
    guard mayLogIn, let user, fields["Authorization"] == nil else { return nil }
    return (user.user, user.password)
  }

  /// Moves ``url`` to the target of a redirect.
  ///
  /// - Returns: `false` when the response is the answer: it is not a redirect, it has no target, or none are followed.
  /// - Throws: ``DownloadError`` with `.tooManyRedirects`, `.invalidResponse` for a `Location` that is not a URL and for
  ///   several different ones, `.unsupportedURL` for a target that is not HTTP, `.insecureRedirect`.
  package mutating func follow(status: Int, headers: HeaderFields) throws(DownloadError) -> Bool {
    let locations = headers.values("Location").map(\.trimmingHTTPWhitespace)
    // For every status: there can be only one, and a header that was tampered with looks like this.
    guard locations.allSatisfy({ $0 == locations.first }) else {
      throw DownloadError(
        .invalidResponse, "the response has several different Location fields; ask the operator of the server",
        httpStatus: status)
    }
    guard rules.maximum > 0, [301, 302, 303, 307, 308].contains(status), let location = locations.first,
      !location.isEmpty
    else { return false }
    guard location.utf8.count <= Self.longestLocation, let target = HTTPURL.resolve(location, against: url) else {
      throw DownloadError(
        .invalidResponse,
        "the Location “\(location.redactedURL.prefix(100).escaped)” of the redirect is not a URL; ask the operator of "
          + "the server", httpStatus: status)
    }
    let next: Origin
    do throws(DownloadError) {
      next = try Self.origin(of: target)
    } catch {
      throw DownloadError(error.code, "the server redirects to a URL that cannot be fetched: \(error.message)")
    }
    let text = HTTPURL.wireText(target)
    if origin.scheme == "https", next.scheme == "http", !rules.allowsInsecure {
      throw DownloadError(
        .insecureRedirect,
        "the server redirects from https to http (\(text.redactedURL)), where the file could be changed in transit; "
          + "if you accept that, allow insecure redirects, or request the http URL directly")
    }
    guard hops.count < rules.maximum else { throw tooMany(text) }
    // Another origin does not choose who logs in at the first one.
    if mayLogIn, next == firstOrigin, let user = UserInfo(URLText(target)) { self.user = user }
    duplicates += DuplicateLinks.urls(in: headers, of: url)
    descriptions += DescriptionLinks.descriptions(in: headers, of: url)
    url = URL(string: text, encodingInvalidCharacters: false) ?? target
    origin = next
    fields = mayLogIn ? allFields.reaching(next, from: firstOrigin) : allFields.forEverybody
    hops.append(url)
    return true
  }

  /// Adds the redirects to a reply, and the duplicates and descriptions that their responses have named, such as those of MirrorBrain.
  package func record(in reply: inout SourceReply) {
    reply.redirects = hops
    guard !duplicates.isEmpty || !descriptions.isEmpty, reply.coverage.hasBytes else { return }
    reply.duplicates = DuplicateLinks.usable(reply.duplicates + duplicates, beside: url)
    reply.descriptions = DescriptionLinks.usable(reply.descriptions + descriptions, beside: url)
  }

  private static let longestLocation = DownloadRequest.maximumURLBytes

  /// A URL that occurs twice is no error by itself: servers set a cookie, or wait for a file, with a redirect to the
  /// same URL.
  private func tooMany(_ target: String) -> DownloadError {
    let isLoop = hops.contains { HTTPURL.wireText($0) == target }
    return DownloadError(
      .tooManyRedirects,
      isLoop
        ? "the server redirects in a loop, again to \(target.redactedURL): open the URL in a browser; the server may "
          + "expect a log-in or cookies"
        : "the server redirected more than \(rules.maximum) times: open the URL in a browser, or allow more redirects")
  }

  /// Returns the origin of a URL that can be requested.
  ///
  /// - Throws: ``DownloadError`` as ``init(_:fields:rules:)``.
  static func origin(of url: URL) throws(DownloadError) -> Origin { try origin(of: URLText(url)) }

  private static func origin(of parts: URLText) throws(DownloadError) -> Origin {
    guard parts.isHTTP else {
      throw DownloadError(
        .unsupportedURL, "only http and https URLs can be fetched, not “\(parts.scheme.prefix(32).escaped)”")
    }
    guard let host = parts.host, !host.isEmpty else {
      throw DownloadError(.invalidRequest, "the URL has no host: write it as http://host/path")
    }
    guard (1...65_535).contains(parts.port ?? 0) else {
      throw DownloadError(.invalidRequest, "the port of the URL is not between 1 and 65535")
    }
    guard let origin = Origin(parts), origin.host.utf8.count <= 253 else {
      throw DownloadError(.invalidRequest, "the host of the URL has characters that are not allowed in host names")
    }
    return origin
  }
}

/// User name and password of a URL.
private struct UserInfo: Sendable {
  let user: String
  /// `nil` where the URL has a name only.
  let password: String?

  init?(_ url: URLText) {
    guard let text = url.userInfo, text.utf8.contains(where: { $0 != UInt8(ascii: ":") }) else { return nil }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    user = Self.decoded(parts[0])
    password = parts.count > 1 ? Self.decoded(parts[1]) : nil
  }

  private static func decoded(_ text: Substring) -> String {
    let octets = Array(text.utf8)
    guard let bytes = PercentEncoding.decode(octets) else { return String(text) }
    return Charset.utf8.decode(bytes) ?? Charset.latin1.decode(bytes) ?? String(text)
  }
}

extension DownloadError.Code {
  /// A redirect from `https:` to `http:`, which is followed only if that is allowed.
  public static let insecureRedirect = DownloadError.Code("insecureRedirect")
}

extension Redirects: CustomStringConvertible {
  /// The current URL, without secrets.
  package var description: String { url.redacted }
}
