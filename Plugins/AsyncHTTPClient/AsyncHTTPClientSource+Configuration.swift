#if AsyncHTTPClient
  extension AsyncHTTPClientSource {
    /// The settings of an ``AsyncHTTPClientSource``.
    public struct Configuration: Sendable, Hashable {
      /// The longest wait for a connection, including name look-up, proxy and TLS handshake; 30 seconds by default.
      public var connectTimeLimit: Duration = .seconds(30)

      /// The longest wait for the next byte from the server; 60 seconds by default, unlimited when `nil`.
      ///
      /// It applies from the request to the head of the response, and then from chunk to chunk. Time in the sink and
      /// time before the body is read do not count.
      public var idleTimeLimit: Duration? = .seconds(60)

      /// The longest time for a whole response, including redirects and body; unlimited when `nil`, the default.
      public var totalTimeLimit: Duration?

      /// The most redirects that are followed for one request; 10 by default. With 0 a redirect is returned as the
      /// response.
      public var maximumRedirects = 10

      /// The proxy; none when `nil`, the default. Environment variables are ignored.
      public var proxy: Proxy?

      /// The versions of HTTP that are offered; ``HTTPVersion/automatic`` by default.
      public var httpVersion: HTTPVersion = .automatic

      /// The trust roots and the client certificate.
      public var tls = TLS()

      /// The `User-Agent` of requests without one; `downpipe` when `nil`, the default.
      public var userAgent: String?

      /// Creates a configuration with the default values.
      public init() {}

      var summary: String {
        let standard = Configuration()
        var parts: [String] = []
        if httpVersion == .http1Only { parts.append("HTTP/1.1 only") }
        if let proxy { parts.append("through \(proxy)") }
        if connectTimeLimit != standard.connectTimeLimit { parts.append("connects within \(connectTimeLimit)") }
        if idleTimeLimit != standard.idleTimeLimit {
          parts.append(idleTimeLimit.map { "idle at most \($0)" } ?? "no idle limit")
        }
        if let totalTimeLimit { parts.append("done within \(totalTimeLimit)") }
        if maximumRedirects != standard.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
        if tls.trustRoots != .system { parts.append("own trust roots") }
        if tls.clientCertificate != nil { parts.append("with a client certificate") }
        return parts.joined(separator: ", ")
      }
    }

    /// The versions of HTTP that a source offers.
    public enum HTTPVersion: Sendable, Hashable {
      /// HTTP/2 over TLS when the server supports it, otherwise HTTP/1.1.
      case automatic
      /// Always HTTP/1.1: one connection for each download, which is faster with some servers.
      case http1Only
    }
  }
#endif
