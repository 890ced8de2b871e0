#if LIBCURL
  package import DownpipeCore
  import Foundation

  extension HTTPSource {
    /// The settings of an ``HTTPSource``.
    public struct Configuration: Sendable, Hashable {
      /// The longest wait for a connection, including name look-up, proxy and TLS handshake; 30 seconds by default.
      public var connectTimeLimit: Duration = .seconds(30)

      /// The longest wait for the next byte from the server; 60 seconds by default, unlimited when `nil`.
      ///
      /// It applies from the request to the head of the response, and then from chunk to chunk. Time in the sink and time
      /// before the body is read do not count.
      public var idleTimeLimit: Duration? = .seconds(60)

      /// The longest time for a whole response, including redirects and body; unlimited when `nil`, the default.
      public var totalTimeLimit: Duration?

      /// The speed below which a transfer ends with `.timedOut`; none when `nil`, the default.
      public var minimumSpeed: MinimumSpeed?

      /// The most redirects that are followed for one request; 10 by default. With 0 a redirect is returned as the
      /// response.
      public var maximumRedirects = 10

      /// Whether a redirect from `https:` to `http:` is followed; `false` by default, because the file could be changed in
      /// transit.
      public var allowsInsecureRedirects = false

      /// The most bytes in the header of a response, interim responses included; 256 KiB by default.
      public var maximumHeaderBytes = 256 * 1024

      /// The largest file, in bytes; unlimited when `nil`, the default. A larger one ends with `.tooLarge`.
      public var maximumSize: Int64?

      /// The schemes that are allowed, in lower case; `http` and `https` by default.
      public var allowedSchemes: Set<String> = ["http", "https"]

      /// The TCP ports that are allowed; all when `nil`, the default.
      public var allowedPorts: Set<Int>?

      /// Whether addresses that are not of the public internet are blocked; `false` by default.
      ///
      /// The address is checked when the source connects to it, after the look-up of the name, for each redirect: a name
      /// that leads to a private address, or to another address with each look-up, gains nothing. Loopback, private,
      /// link-local, shared, multicast and reserved addresses are blocked, also inside of IPv4-mapped, NAT64 and 6to4
      /// addresses. Such a download ends with `.privateAddress`.
      ///
      /// A proxy resolves names itself: with this option no proxy is used, and a configured one is an error.
      public var blocksPrivateAddresses = false

      /// The proxy; by default that of the environment.
      public var proxy: ProxySetting = .environment

      /// The versions of HTTP that are offered; ``HTTPVersion/automatic`` by default.
      public var httpVersion: HTTPVersion = .automatic

      /// The trust roots, the client certificate, pinned keys.
      public var tls = TLS()

      /// User names, passwords and tokens, each for one origin; none by default.
      ///
      /// User information in a URL and an `Authorization` field of a request precede them. They are sent for the URLs of
      /// requests, and not for places that a server names: redirects to another origin, duplicates.
      public var credentials: [Credentials] = []

      /// The netrc file with user names and passwords of hosts; none when `nil`, the default.
      ///
      /// The first entry of the URL's host is used; with a user name in the URL, the first one for that user. Places that
      /// a server names get none.
      public var netrc: Netrc?

      /// How user names and passwords of URLs and of the netrc file are sent; ``PasswordSchemes/basic`` by default.
      public var passwordSchemes = PasswordSchemes.basic

      /// Where cookies are kept; none are kept or sent when `nil`, the default.
      public var cookies: Cookies?

      /// Addresses for names that are not looked up; none by default.
      public var resolve: [HostAddress] = []

      /// Whether a content coding that the server applies although none was requested stays on the file; `false` by
      /// default.
      public var keepsContentCoding = false

      /// The most idle connections that each of the few threads keeps open; 16 by default, none with 0. They are closed after a minute.
      public var idleConnections = 16

      /// The `User-Agent` of requests without one; `downpipe` when `nil`, the default.
      public var userAgent: String?

      /// Creates a configuration with the default values.
      public init() {}

      /// For links from strangers: addresses of the public internet only and no proxy, the usual ports, at most 5 redirects,
      /// 64 KiB of header and 10 GiB a file, TLS 1.2 or later, no netrc and no cookies.
      public static var untrusted: Configuration {
        var configuration = Configuration()
        configuration.blocksPrivateAddresses = true
        configuration.proxy = .none
        configuration.allowedPorts = [80, 443, 8080, 8443]
        configuration.maximumRedirects = 5
        configuration.maximumHeaderBytes = 64 * 1024
        configuration.maximumSize = 10 << 30
        configuration.minimumSpeed = MinimumSpeed(bytesPerSecond: 100, over: .seconds(60))
        return configuration
      }
    }

    /// A speed that a transfer must not stay below.
    public struct MinimumSpeed: Sendable, Hashable {
      /// Bytes per second.
      public var bytesPerSecond: Int
      /// How long the transfer may be slower, in whole seconds.
      public var time: Duration

      /// Creates a minimum speed.
      public init(bytesPerSecond: Int, over time: Duration) {
        self.bytesPerSecond = bytesPerSecond
        self.time = time
      }
    }

    /// The versions of HTTP that a source offers.
    public enum HTTPVersion: Sendable, Hashable {
      /// HTTP/2 over TLS when the server supports it, otherwise HTTP/1.1.
      case automatic
      /// Always HTTP/1.1: one connection for each download, which is faster with some servers.
      case http1Only
    }

    /// Where the cookies of a session are kept (RFC 6265, with the public suffix list).
    public enum Cookies: Sendable, Hashable {
      /// In memory, until the downloader shuts down.
      case memory
      /// In a file in Netscape's format, which is read when the downloader starts and written when it shuts down; a link stays
      /// a link. A file that has anything but cookies and comments is refused and left alone.
      case file(String)
    }

    /// The addresses of a host, in place of a look-up.
    public struct HostAddress: Sendable, Hashable {
      /// The host name, in lower case.
      public var host: String
      /// The TCP port for which the addresses apply.
      public var port: Int
      /// IPv4 or IPv6 addresses, without brackets.
      public var addresses: [String]

      /// Creates an entry.
      public init(host: String, port: Int, addresses: [String]) {
        self.host = host.lowercased()
        self.port = port
        self.addresses = addresses
      }

      package var entry: String {
        "\(host):\(port):\(addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ","))"
      }
    }
  }

  extension HTTPSource.HostAddress {
    /// Rejects what is not a host name, a port and IP addresses.
    package func check() throws(DownloadError) {
      guard host.isHost, (1...65_535).contains(port), !addresses.isEmpty,
        addresses.allSatisfy({ NetworkAddress($0) != nil })
      else {
        throw DownloadError(
          .invalidPipeline,
          "the addresses for \(host.escaped) cannot be used: they are a host name, a port and IP addresses")
      }
    }
  }

  extension HTTPSource.Configuration {
    var redirectRules: Redirects.Rules {
      Redirects.Rules(maximum: maximumRedirects, allowsInsecure: allowsInsecureRedirects)
    }

    /// Rejects settings that contradict each other.
    func check() throws(DownloadError) {
      if blocksPrivateAddresses, case .proxy = proxy.kind {
        throw DownloadError(
          .invalidPipeline,
          "private addresses cannot be blocked behind a proxy, which looks names up itself: let the proxy block them, or use "
            + "no proxy")
      }
      if case .proxy(let proxy, _) = proxy.kind { try proxy.check() }
      for entry in resolve { try entry.check() }
      try tls.check()
    }

    /// Rejects a URL whose scheme or port is not allowed.
    func check(_ url: URL, _ origin: Origin) throws(DownloadError) {
      guard allowedSchemes.contains(origin.scheme) else {
        throw DownloadError(
          .unsupportedURL,
          "the scheme of \(url.redacted) is not allowed: allowed are \(allowedSchemes.sorted().joined(separator: ", "))"
        )
      }
      guard let port = origin.port, allowedPorts?.contains(port) ?? true else {
        throw DownloadError(
          .unsupportedURL,
          "the port \(origin.port ?? 0) of \(url.redacted) is not allowed: allowed are "
            + (allowedPorts ?? []).sorted().map(String.init).joined(separator: ", "))
      }
    }

    var summary: String {
      let standard = HTTPSource.Configuration()
      var parts: [String] = []
      if httpVersion == .http1Only { parts.append("HTTP/1.1 only") }
      if proxy != standard.proxy { parts.append("\(proxy)") }
      if blocksPrivateAddresses { parts.append("public addresses only") }
      if let allowedPorts { parts.append("ports \(allowedPorts.sorted().map(String.init).joined(separator: ", "))") }
      if allowedSchemes != standard.allowedSchemes { parts.append(allowedSchemes.sorted().joined(separator: ", ")) }
      if connectTimeLimit != standard.connectTimeLimit { parts.append("connects within \(connectTimeLimit)") }
      if idleTimeLimit != standard.idleTimeLimit {
        parts.append(idleTimeLimit.map { "idle at most \($0)" } ?? "no idle limit")
      }
      if let totalTimeLimit { parts.append("done within \(totalTimeLimit)") }
      if let minimumSpeed { parts.append("at least \(minimumSpeed.bytesPerSecond) bytes/s") }
      if maximumRedirects != standard.maximumRedirects { parts.append("at most \(maximumRedirects) redirects") }
      if allowsInsecureRedirects { parts.append("insecure redirects") }
      if let maximumSize { parts.append("at most \(maximumSize) bytes") }
      if !credentials.isEmpty { parts.append("with credentials") }
      if netrc != nil { parts.append("netrc") }
      if passwordSchemes != .basic { parts.append("passwords by \(passwordSchemes)") }
      if cookies != nil { parts.append("cookies") }
      if keepsContentCoding { parts.append("keeps content codings") }
      parts += tls.summary
      return parts.joined(separator: ", ")
    }
  }
#endif
