#if LIBCURL
  public import DownpipeCore
  import Foundation

  extension HTTPSource {
    /// How a source finds its proxy.
    public struct ProxySetting: Sendable, Hashable, CustomStringConvertible {
      enum Kind: Hashable {
        case environment(PasswordSchemes)
        case none
        case proxy(Proxy, except: [String])
      }

      let kind: Kind

      /// The variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as libcurl reads them.
      public static let environment = ProxySetting(kind: .environment(.basic))

      /// The same, with the way in which the user name and the password of such a variable are sent.
      public static func environment(passwordSchemes: PasswordSchemes) -> ProxySetting {
        ProxySetting(kind: .environment(passwordSchemes))
      }

      /// Whether the settings name the proxy, and not the environment.
      package var isNamed: Bool { if case .proxy = kind { true } else { false } }

      /// No proxy.
      public static let none = ProxySetting(kind: .none)

      /// A proxy for all URLs.
      /// - Parameters:
      ///   - proxy: The proxy.
      ///   - hosts: Hosts that are reached directly: names, names with a leading dot for a whole domain, addresses, blocks
      ///     such as `10.0.0.0/8`, or `*`.
      public static func proxy(_ proxy: Proxy, except hosts: [String] = []) -> ProxySetting {
        ProxySetting(kind: .proxy(proxy, except: hosts))
      }

      /// The proxy without credentials.
      public var description: String {
        switch kind {
        case .environment: "proxy of the environment"
        case .none: "no proxy"
        case .proxy(let proxy, _): "through \(proxy)"
        }
      }
    }

    /// A proxy that a source connects through.
    public struct Proxy: Sendable, Hashable, CustomStringConvertible {
      /// A user name and a password for a proxy.
      public struct Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
        /// The user name, unencoded.
        public var user: String
        /// The password, unencoded.
        public var password: String
        /// How an HTTP proxy is told.
        public var schemes: PasswordSchemes

        /// Creates credentials.
        public init(user: String, password: String, schemes: PasswordSchemes = .basic) {
          self.user = user
          self.password = password
          self.schemes = schemes
        }

        /// The user name without the password.
        public var description: String { user }

        /// The user name without the password, for `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
      }

      /// What a proxy speaks.
      public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// HTTP: `https:` uses a `CONNECT` tunnel, `http:` a request in absolute form (RFC 9112 §3.2.2).
        case http
        /// HTTP over TLS.
        case https
        /// SOCKS 4, which knows IPv4 addresses only.
        case socks4
        /// SOCKS 4a: the proxy looks names up.
        case socks4a
        /// SOCKS 5 (RFC 1928): names are looked up here.
        case socks5
        /// SOCKS 5: the proxy looks names up.
        case socks5h
      }

      /// What the proxy speaks.
      public let kind: Kind
      /// The host name or address of the proxy, without brackets.
      public let host: String
      /// The TCP port of the proxy.
      public let port: Int
      /// The user name and the password; none when `nil`.
      public var credentials: Credentials?

      /// Creates a proxy. A source that cannot use it does not start.
      public init(_ kind: Kind, host: String, port: Int, credentials: Credentials? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.credentials = credentials
      }

      /// Creates a proxy from a text such as `socks5h://user:password@host:1080`. Without a scheme it is an HTTP proxy.
      /// - Throws: `DownloadError` with `.invalidRequest`.
      public init(_ text: String) throws(DownloadError) {
        let written = text.contains("://") ? text : "http://\(text)"
        guard let parts = URLComponents(string: written), let scheme = parts.scheme?.lowercased(),
          let host = parts.host, !host.isEmpty
        else {
          throw DownloadError(
            .invalidRequest, "“\(text.redactedURL)” is not a proxy: write it as http://host:port or socks5h://host:port"
          )
        }
        guard let kind = Kind(rawValue: scheme == "socks" ? "socks4" : scheme) else {
          throw DownloadError(
            .invalidRequest,
            "“\(scheme)” proxies are not supported: use \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.init(
          kind, host: bare, port: parts.port ?? Self.usualPort(kind),
          credentials: parts.user.map { Credentials(user: $0, password: parts.password ?? "") })
        try check()
      }

      /// - Throws: `DownloadError` with `.invalidRequest` when the host is neither a name nor an address, or the port is
      ///   not between 1 and 65535.
      func check() throws(DownloadError) {
        guard host.isHost, (1...65_535).contains(port) else {
          throw DownloadError(
            .invalidRequest,
            "the proxy \(self) cannot be used: its host must be a name or an address, and its port between 1 and 65535")
        }
      }

      private static func usualPort(_ kind: Kind) -> Int {
        switch kind {
        case .http: 80
        case .https: 443
        case .socks4, .socks4a, .socks5, .socks5h: 1080
        }
      }

      /// The URL of the proxy without credentials.
      public var description: String { "\(kind.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
    }
  }
#endif
