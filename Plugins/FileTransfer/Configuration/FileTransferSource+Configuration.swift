#if LIBCURL
  public import DownpipeCore
  public import DownpipeHTTP
  import Foundation

  extension FileTransferSource {
    /// The settings of a ``FileTransferSource``.
    public struct Configuration: Sendable, Hashable {
      /// The longest wait for a connection, including name look-up, TLS or SSH handshake and log-in; 30 seconds by default.
      public var connectTimeLimit: Duration = .seconds(30)

      /// The longest wait for the next byte or reply of the server; 60 seconds by default, unlimited when `nil`.
      ///
      /// Time in the sink and time before the body is read do not count.
      public var idleTimeLimit: Duration? = .seconds(60)

      /// The longest time for a whole file; unlimited when `nil`, the default.
      public var totalTimeLimit: Duration?

      /// The speed below which a transfer ends with `.timedOut`; none when `nil`, the default.
      public var minimumSpeed: HTTPSource.MinimumSpeed?

      /// The largest file, in bytes; unlimited when `nil`, the default. A larger one ends with `.tooLarge`.
      public var maximumSize: Int64?

      /// The schemes that are allowed, in lower case; `ftp`, `ftps` and `sftp` by default.
      public var allowedSchemes: Set<String> = ["ftp", "ftps", "sftp"]

      /// The TCP ports that are allowed in URLs; all when `nil`, the default. The server chooses the port of a data
      /// connection.
      public var allowedPorts: Set<Int>?

      /// Whether addresses that are not of the public internet are blocked, for data connections as well; `false` by
      /// default. No proxy is used then, because it would look the names up.
      public var blocksPrivateAddresses = false

      /// The proxy; by default that of the environment (`ftp_proxy`, `sftp_proxy`, `all_proxy`). An HTTP proxy must allow
      /// tunnels (`CONNECT`).
      public var proxy: HTTPSource.ProxySetting = .environment

      /// Whether FTP is encrypted for `ftp:` URLs; ``Encryption/ifAvailable`` by default.
      public var encryption: Encryption = .ifAvailable

      /// The trust roots, the client certificate and the pinned keys of FTP over TLS.
      public var tls = HTTPSource.TLS()

      /// The known hosts and the keys of SFTP.
      public var ssh = SSH()

      /// User names and passwords, each for one origin; none by default.
      public var credentials: [Credentials] = []

      /// The netrc file with user names and passwords of hosts; none when `nil`, the default.
      public var netrc: HTTPSource.Netrc?

      /// Addresses for names that are not looked up; none by default.
      public var resolve: [HTTPSource.HostAddress] = []

      /// The most idle connections that each of the two threads keeps open; 8 by default, none with 0. They are closed after
      /// a minute.
      public var idleConnections = 8

      /// Creates a configuration with the default values.
      public init() {}

      /// For links from strangers: FTP with and without TLS at the usual ports, addresses of the public internet only and no
      /// proxy, 10 GiB a file. SFTP is refused, because it would use keys of the user.
      public static var untrusted: Configuration {
        var configuration = Configuration()
        configuration.allowedSchemes = ["ftp", "ftps"]
        configuration.allowedPorts = [21, 990]
        configuration.blocksPrivateAddresses = true
        configuration.proxy = .none
        configuration.maximumSize = 10 << 30
        configuration.minimumSpeed = HTTPSource.MinimumSpeed(bytesPerSecond: 100, over: .seconds(60))
        return configuration
      }
    }

    /// Whether the control and the data connection of an `ftp:` URL are encrypted (RFC 4217).
    public enum Encryption: Sendable, Hashable {
      /// A server without TLS is refused.
      case required
      /// With a server that offers TLS. An attacker on the way can make such a connection plain. A certificate that is not
      /// trusted is refused.
      case ifAvailable
      /// Never: everybody on the way can read and change what is transferred.
      case none
    }

    /// A user name and a password for one origin.
    public struct Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
      let user: String
      let password: String
      /// The origin that they are sent to, and no other.
      public let origin: Origin

      /// Creates credentials.
      public init(user: String, password: String, for origin: Origin) {
        self.user = user
        self.password = password
        self.origin = origin
      }

      /// The origin, without the secret.
      public var description: String { "credentials for \(origin)" }

      /// The origin, without the secret, for `dump`.
      public var customMirror: Mirror { Mirror(self, children: ["origin": origin]) }
    }
  }

  extension FileTransferSource.Configuration {
    /// Rejects settings that contradict each other.
    func check() throws(DownloadError) {
      if blocksPrivateAddresses, proxy.isNamed {
        throw DownloadError(
          .invalidPipeline,
          "private addresses cannot be blocked behind a proxy, which looks names up itself: let the proxy block them, or use "
            + "no proxy")
      }
      for entry in resolve { try entry.check() }
      try tls.check()
    }

    /// Rejects a URL whose scheme or port is not allowed.
    func check(_ location: FileLocation) throws(DownloadError) {
      guard allowedSchemes.contains(location.scheme.rawValue) else {
        throw DownloadError(
          .unsupportedURL,
          "\(location.scheme.rawValue): URLs are not allowed here: allowed are "
            + allowedSchemes.sorted().joined(separator: ", "))
      }
      guard allowedPorts?.contains(location.origin.port ?? 0) ?? true else {
        throw DownloadError(
          .unsupportedURL,
          "the port \(location.origin.port ?? 0) is not allowed: allowed are "
            + (allowedPorts ?? []).sorted().map(String.init).joined(separator: ", "))
      }
    }

    var curlSettings: CurlSettings {
      var settings = CurlSettings()
      settings.connectTimeLimit = connectTimeLimit
      settings.idleTimeLimit = idleTimeLimit
      settings.totalTimeLimit = totalTimeLimit
      settings.minimumSpeed = minimumSpeed
      settings.maximumHeaderBytes = 64 * 1024
      settings.blocksPrivateAddresses = blocksPrivateAddresses
      settings.idleConnections = idleConnections
      settings.proxy = blocksPrivateAddresses ? .none : proxy
      settings.tls = tls
      settings.waitsForFarewell = true
      return settings
    }

    var summary: String {
      let standard = FileTransferSource.Configuration()
      var parts: [String] = []
      switch encryption {
      case .required: parts.append("TLS required")
      case .ifAvailable: break
      case .none: parts.append("without TLS")
      }
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
      if let maximumSize { parts.append("at most \(maximumSize) bytes") }
      if !credentials.isEmpty { parts.append("with credentials") }
      if netrc != nil { parts.append("netrc") }
      return (parts + tls.summary + ssh.summary).joined(separator: ", ")
    }
  }
#endif
