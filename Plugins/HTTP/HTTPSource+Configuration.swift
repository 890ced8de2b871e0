extension HTTPSource {
  /// What can be set on an ``HTTPSource``.
  public struct Configuration: Sendable, Hashable {
    /// The longest wait for a connection, name look-up, proxy and TLS handshake included; 30 seconds by default.
    public var connectTimeLimit: Duration = .seconds(30)

    /// The longest time without a byte from the server while one is waited for; 60 seconds by default.
    ///
    /// It counts from the sending of the request to the answer's head, and then from chunk to chunk. The
    /// time a sink takes and the time a body waits unread do not count. `nil` waits for ever.
    public var idleTimeLimit: Duration? = .seconds(60)

    /// The longest time for a whole answer, redirects and body included; none by default.
    public var totalTimeLimit: Duration?

    /// The most redirects followed for one request; 10 by default. With 0 a redirect is the answer itself.
    public var maximumRedirects = 10

    /// The proxy to go through; none by default. Environment variables are not looked at.
    public var proxy: Proxy?

    /// The versions of HTTP to offer.
    public var httpVersion: HTTPVersion = .automatic

    /// Whom to trust, and who to be.
    public var tls = TLS()

    /// The `User-Agent` of requests that do not bring one; `downpipe` by default.
    public var userAgent: String?

    /// The defaults.
    public init() {}

    var summary: String {
      let standard = Configuration()
      var parts: [String] = []
      if httpVersion == .http1Only { parts.append("HTTP/1.1 only") }
      if let proxy { parts.append("through \(proxy)") }
      if connectTimeLimit != standard.connectTimeLimit { parts.append("connects within \(connectTimeLimit)") }
      if idleTimeLimit != standard.idleTimeLimit {
        parts.append(idleTimeLimit.map { "idle at most \($0)" } ?? "idle for ever")
      }
      if let totalTimeLimit { parts.append("done within \(totalTimeLimit)") }
      if maximumRedirects != standard.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
      if tls.trustRoots != .system { parts.append("own trust roots") }
      if tls.clientCertificate != nil { parts.append("with a client certificate") }
      return parts.joined(separator: ", ")
    }
  }

  /// The versions of HTTP to offer.
  public enum HTTPVersion: Sendable, Hashable {
    /// HTTP/2 over TLS where the server speaks it, HTTP/1.1 otherwise.
    case automatic
    /// HTTP/1.1 always: a connection a download, which is what some servers are faster with.
    case http1Only
  }
}
