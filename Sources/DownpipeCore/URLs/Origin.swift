public import Foundation

/// The origin of a URL: scheme, host and port (RFC 6454).
///
/// Credentials for one origin are never sent to another one: not to a mirror, not to a fresh link, not after a redirect.
/// ```swift
/// Origin("https://example.org") == Origin("https://EXAMPLE.org:443/file")   // true
/// Origin("https://example.org") == Origin("https://example.org.")           // false, as in browsers
/// ```
/// Two spellings of one IP address are different origins.
public struct Origin: Hashable, Sendable {
  /// The scheme, in lower case.
  public let scheme: String
  /// The host in lower case, in its ASCII form; an IPv6 address is in brackets.
  public let host: String
  /// The port: the scheme's own one when the URL has none; `nil` when that is unknown, too.
  public let port: Int?

  /// Creates the origin of an absolute URL; `nil` when the URL has no scheme or no host, or no valid port.
  public init?(_ url: URL) { self.init(URLText(url)) }

  /// Creates the origin of the text of an absolute URL, such as `https://example.org:8443`; `nil` when the URL has no
  /// scheme or no host, or no valid port.
  public init?(_ text: String) {
    guard let url = HTTPURL.parse(text) else { return nil }
    self.init(url)
  }

  init?(_ text: URLText) {
    let scheme = text.scheme
    guard !scheme.isEmpty, let host = text.host.flatMap(URLHost.ascii) else { return nil }
    let port = text.port
    guard (0...65_535).contains(port ?? (text.portText == nil ? 0 : -1)) else { return nil }
    self.scheme = scheme.inLowerCase
    self.host = host
    self.port = port
  }
}

extension URL {
  /// Whether the URL is another one, or has its origin. A URL without an origin has only itself.
  package func isAtOrigin(of other: URL) -> Bool {
    if self == other { return true }
    guard let origin = Origin(self) else { return false }
    return origin == Origin(other)
  }
}

extension Origin: CustomStringConvertible {
  /// The origin as text, such as `https://example.org:8443`; a port that is the scheme's own one is left out.
  public var description: String {
    let isUsual = port == URLText.defaultPort(of: scheme)
    return "\(scheme)://\(host)\(port.flatMap { isUsual ? nil : ":\($0)" } ?? "")"
  }
}

extension Origin: Codable {
  /// Decodes an origin from its ``description``.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let origin = Origin(URLText(try container.decode(String.self))) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "the text is not an origin")
    }
    self = origin
  }

  /// Encodes the ``description``.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
