import Downpipe

/// The options about servers, and how to reach them. What is `nil` is the source's default.
struct NetworkSettings: Sendable, Hashable {
  enum Proxy: Sendable, Hashable {
    /// What `http_proxy` and the other variables say.
    case environment
    case none
    /// It may have a password.
    case url(Secret)
  }

  var proxy = Proxy.environment
  var proxyLogIn: LogIn?
  var proxyMethod = LogInSettings.Method.basic
  var addresses: [FixedAddress] = []
  var usesHTTP1Only = false
  var maximumRedirects: Int?
  var allowsInsecureRedirects = false
  /// In bytes.
  var maximumSize: Int64?
  /// In bytes for each second.
  var minimumSpeed: Int64?
  var keepsContentCoding = false
  /// Whether the URLs are from strangers.
  var isUntrusted = false
  var logIn = LogInSettings()
  var tls = TLSSettings()

  /// The same for URLs from strangers: without all that they could profit from.
  var forStrangers: NetworkSettings {
    var settings = self
    settings.isUntrusted = true
    settings.proxy = .none
    settings.proxyLogIn = nil
    settings.addresses = []
    settings.allowsInsecureRedirects = false
    settings.logIn = LogInSettings()
    settings.tls.isInsecure = false
    settings.tls.certificate = nil
    settings.tls.privateKey = nil
    return settings
  }
}

/// The options about names, passwords and cookies.
struct LogInSettings: Sendable, Hashable {
  enum Method: String, Sendable, Hashable, CaseIterable {
    /// The password goes with the first request (RFC 7617).
    case basic
    /// A proof of the password goes with the second request (RFC 7616).
    case digest
    /// Digest where the server offers it, and Basic otherwise.
    case any
  }

  var logIn: LogIn?
  var method = Method.basic
  /// The origins that get the name or the token, as far as they are known. The methods that ask the server first need to
  /// know them; otherwise each download gets it for the origin of its URL.
  var origins: Set<Origin>?
  var bearerToken: Secret?
  /// The absolute path of the file with names and passwords of hosts.
  var netrc: String?
  /// The absolute path of the file with cookies.
  var cookieJar: String?

  /// Whether the command was given a name or a token.
  var isGiven: Bool { logIn != nil || bearerToken != nil }
}

/// The options about TLS. Paths are absolute.
struct TLSSettings: Sendable, Hashable {
  enum Version: String, Sendable, Hashable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
  }

  var trustRoots: String?
  var certificate: String?
  /// `nil` where the file of the certificate has the key.
  var privateKey: String?
  /// Each is `sha256//` and a digest in Base64.
  var pinnedPublicKeys: [String] = []
  var minimumVersion: Version?
  var isInsecure = false
}

/// The value of `--resolve`.
struct FixedAddress: Sendable, Hashable {
  var host: String
  var port: Int
  var addresses: [String]

  /// Parses `host:port:address[,address]`; IPv6 addresses may be in brackets.
  static func parse(_ text: String) throws(UsageError) -> FixedAddress {
    let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, let port = Int(parts[1]), (1...65_535).contains(port) else {
      throw UsageError("write it as host:port:address, such as example.org:443:192.0.2.1")
    }
    let addresses = parts[2].split(separator: ",", omittingEmptySubsequences: false).map {
      $0.hasPrefix("[") && $0.hasSuffix("]") ? String($0.dropFirst().dropLast()) : String($0)
    }
    guard addresses.allSatisfy({ !$0.isEmpty && $0.allSatisfy { $0.isHexDigit || $0 == "." || $0 == ":" } }) else {
      throw UsageError("“\(parts[2].prefix(80))” is not an address: use numbers, such as 192.0.2.1")
    }
    return FixedAddress(host: String(parts[0]), port: port, addresses: addresses)
  }
}
