#if AsyncHTTPClient
  public import DownpipeCore
  import Foundation

  extension AsyncHTTPClientSource {
    /// The proxy that a source connects through.
    public struct Proxy: Sendable, Hashable, CustomStringConvertible {
      /// A user name and a password for a proxy.
      public struct Credentials: Sendable, Hashable, CustomStringConvertible {
        /// The user name, unencoded.
        public var user: String
        /// The password, unencoded.
        public var password: String

        /// Makes credentials for Basic authentication.
        public init(user: String, password: String) {
          self.user = user
          self.password = password
        }

        /// The user name without the password.
        public var description: String { user }

        /// The value of a `Proxy-Authorization` or `Authorization` field (RFC 7617).
        var basic: String { "Basic " + Data("\(user):\(password)".utf8).base64EncodedString() }
      }

      enum Kind: Hashable {
        case http(Credentials?)
        case socks5
      }

      let kind: Kind
      /// The host name or address of the proxy.
      public let host: String
      /// The TCP port of the proxy.
      public let port: Int

      /// An HTTP proxy: `https:` uses a `CONNECT` tunnel, `http:` a request in absolute form (RFC 9112 §3.2.2).
      public static func http(host: String, port: Int, credentials: Credentials? = nil) -> Proxy {
        Proxy(kind: .http(credentials), host: host, port: port)
      }

      /// A SOCKS 5 proxy (RFC 1928) without authentication. The proxy resolves host names.
      public static func socks5(host: String, port: Int = 1080) -> Proxy {
        Proxy(kind: .socks5, host: host, port: port)
      }

      private init(kind: Kind, host: String, port: Int) {
        self.kind = kind
        self.host = host
        self.port = port
      }

      /// Parses the URL of a proxy: `http://user:password@host:port`, `socks5://host:port`, `socks5h://host:port`,
      /// or `host:port` for an HTTP proxy.
      /// - Throws: `DownloadError` with `.invalidRequest` for other text.
      public init(url text: String) throws(DownloadError) {
        let whole = text.contains("://") ? text : "http://" + text
        guard let parts = URLComponents(string: whole), let scheme = parts.scheme?.lowercased(),
          let host = parts.host, !host.isEmpty
        else {
          throw DownloadError(
            .invalidRequest, "the URL of the proxy is malformed: write it as http://host:port or socks5://host:port")
        }
        let credentials = parts.user.map { Credentials(user: $0, password: parts.password ?? "") }
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        switch scheme {
        case "http":
          self = .http(host: bare, port: parts.port ?? 80, credentials: credentials)
        case "socks5", "socks5h":
          guard credentials == nil else {
            throw DownloadError(
              .invalidRequest,
              "SOCKS proxies with a user name are not supported: use one without authentication, or an HTTP proxy")
          }
          self = .socks5(host: bare, port: parts.port ?? 1080)
        default:
          throw DownloadError(
            .invalidRequest, "“\(scheme)” proxies are not supported: use http://host:port or socks5://host:port")
        }
        try check()
      }

      /// The URL of the proxy without credentials.
      public var description: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return if case .http = kind { "http://\(host):\(port)" } else { "socks5://\(host):\(port)" }
      }

      /// Rejects values for which SwiftNIO would stop the process.
      func check() throws(DownloadError) {
        guard host.isHost, (1...65_535).contains(port) else {
          throw DownloadError(
            .invalidRequest,
            "the proxy \(self) cannot be used: its host must be a name or an address, and its port between 1 and 65535")
        }
      }
    }
  }
#endif
